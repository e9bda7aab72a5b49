"""What uses one part of a tensor waits for nothing that is under way on another, on the host or on the device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu.multiprocessing import ProcessRaisedException


def run(open_world: OpenWorld, ranks: int, program: Callable[[int], None]) -> None:
    """Runs the program on that many ranks, which are all that there are."""

    def whole(rank: int) -> None:
        dist.init_process_group()
        program(rank)

    open_world(f"name: some\nsystem: {{sips: {{count: {ranks}}}}}\n")
    on_ranks(ranks, whole)


READS: dict[str, Callable[[torch.Tensor], object]] = {
    "item": lambda t: t.sum().item(),
    "numpy": lambda t: t.numpy().sum(),
    "asarray": lambda t: np.asarray(t).sum(),
    "tolist": lambda t: np.sum(t.tolist()),
    "float of an element": lambda t: sum(float(x) for x in t.flatten()),
    "cpu": lambda t: t.cpu().sum().item(),
    "mask": lambda t: t[t > 0].sum().item(),
    "clone": lambda t: t.clone().sum().item(),
    "another dtype": lambda t: t.to(torch.float64).sum().item(),
    "bytes": lambda t: t.view(torch.int32).clone().view(torch.float32).sum().item(),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("axis", ["rows", "columns"])
def test_the_interior_is_read_before_the_halo_comes(open_world: OpenWorld, read: str, device: str, axis: str) -> None:
    """What each sends is made of its interior, after it has asked for its neighbours' parts of the same tensor."""
    start = [np.arange(1, 21, dtype=np.float32).reshape(4, 5) + 100 * rank for rank in range(3)]
    sums = [float(s[:, 1:-1].sum()) if axis == "columns" else float(s[1:-1].sum()) for s in start]

    def program(rank: int) -> None:
        whole = torch.tensor(start[rank], device=device)
        x = whole.t() if axis == "columns" else whole
        left, right = (rank - 1) % 3, (rank + 1) % 3
        halo = [dist.irecv(x[0], left), dist.irecv(x[-1], right)]
        total = READS[read](x[1:-1])
        assert total == sums[rank]
        part = torch.full((x.shape[1],), float(np.asarray(total)), device=device)
        sent = [dist.isend(part, right), dist.isend(part, left)]
        for work in (*halo, *sent):
            work.wait()
        assert x[0].tolist() == [sums[left]] * x.shape[1]
        assert x[-1].tolist() == [sums[right]] * x.shape[1]
        assert READS[read](x[1:-1]) == sums[rank]

    run(open_world, 3, program)


def test_what_is_to_be_received_is_waited_for(open_world: OpenWorld) -> None:
    """Who reads, before it sends, what the other sends when it has received: that is a deadlock."""

    def program(rank: int) -> None:
        x = torch.zeros(4, 3)
        dist.irecv(x[:, 0], 1 - rank)
        x[2].tolist()
        dist.isend(x[:, 1], 1 - rank)

    with pytest.raises(ProcessRaisedException, match=r"cause: ranks 0 and 1 wait for each other in a circle"):
        run(open_world, 2, program)
