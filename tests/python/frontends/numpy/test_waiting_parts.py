"""A use of one part of a tensor waits for nothing that is under way on another, on the host or on the device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu.multiprocessing import ProcessRaisedException

pytestmark = pytest.mark.filterwarnings("ignore::torchemu.runtime.outstanding.UnwaitedWarning")  # on purpose


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
    """Each sends what is made of its interior, after it has asked for its neighbours' parts of the same tensor."""
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


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_what_is_sent_can_be_read(open_world: OpenWorld, read: str, device: str) -> None:
    """Rank 1 takes a message after one that is made of what the first one has."""

    def program(rank: int) -> None:
        x = torch.full((2, 3), 2.0, device=device)
        if rank == 0:
            sent = dist.isend(x, 1, tag=1)
            total = READS[read](x)
            dist.send(torch.full((2,), float(np.asarray(total)), device=device), 1, tag=2)
            sent.wait()
        else:
            for tag, expected in ((2, [12.0, 12.0]), (1, [2.0] * 6)):
                into = torch.zeros(len(expected), device=device)
                dist.recv(into, 0, tag=tag)
                assert into.tolist() == expected

    run(open_world, 2, program)


@pytest.mark.parametrize("numel", [3, 40_000])
@pytest.mark.parametrize("write", ["fill_", "copy_", "add_", "recv", "all_reduce"])
def test_what_is_sent_is_as_it_was(open_world: OpenWorld, write: str, numel: int) -> None:
    """A write after a message has been issued follows it, though nobody has received that."""

    writes: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
        "fill_": lambda x, ones: x.fill_(7),
        "copy_": lambda x, ones: x.copy_(ones * 7),
        "add_": lambda x, ones: x.add_(ones, alpha=5),
        "recv": lambda x, ones: dist.irecv(x, 1, tag=2),
        "all_reduce": lambda x, ones: dist.all_reduce(x, async_op=True),
    }

    def program(rank: int) -> None:
        x, ones = torch.full((numel,), 2.0, device="cuda"), torch.ones(numel, device="cuda")
        if rank == 0:
            dist.isend(x, 1, tag=1)
            writes[write](x, ones)
        else:
            if write == "recv":
                dist.isend(ones * 7, 0, tag=2)
            elif write == "all_reduce":
                dist.all_reduce(ones * 5, async_op=True)
            into = torch.zeros(numel, device="cuda")
            dist.recv(into, 0, tag=1)
            assert np.array_equal(into.numpy(force=True), np.full(numel, 2, np.float32))
        dist.barrier()
        if rank == 0:
            assert np.array_equal(x.cpu().numpy(), np.full(numel, 7, np.float32))

    run(open_world, 2, program)


@pytest.mark.parametrize("numel", [3, 40_000])
def test_a_computation_that_is_put_off_has_what_was_there(open_world: OpenWorld, numel: int) -> None:
    """An operand that it reads, and is known, is written before it can be computed."""

    def program(rank: int) -> None:
        y, x, w = (torch.full((numel,), k, device="cuda") for k in (1.0, 2.0, 5.0))
        if rank == 1:
            dist.recv(torch.zeros(1, device="cuda"), 0)
        dist.all_reduce(y)
        z = x * y
        x.copy_(w)
        if rank == 0:
            dist.send(torch.zeros(1, device="cuda"), 1)
        assert np.array_equal(z.cpu().numpy(), np.full(numel, 4, np.float32))
        assert np.array_equal(x.cpu().numpy(), np.full(numel, 5, np.float32))

    run(open_world, 2, program)


def test_bytes_of_another_dtype_are_put_off(open_world: OpenWorld) -> None:
    """A host goes on that looks, for a computation, at what is to come as at another dtype."""

    def program(rank: int) -> None:
        y = torch.full((4,), 1.5, device="cuda")
        if rank == 1:
            dist.recv(torch.zeros(1, device="cuda"), 0, tag=1)
        dist.all_reduce(y)
        seen = torch.zeros(4, dtype=torch.int32, device="cuda")
        exchange = dist.isend(y.view(torch.int32), 1 - rank), dist.irecv(seen, 1 - rank)
        bits = y.view(torch.int32) + 1
        y.view(torch.int32)[2:] -= 1
        if rank == 0:
            dist.send(torch.zeros(1, device="cuda"), 1, tag=1)
        for work in exchange:
            work.wait()
        three = np.full(4, 3, np.float32).view(np.int32)
        assert seen.tolist() == list(three)
        assert bits.tolist() == list(three + 1)
        assert y.view(torch.int32).tolist() == [*three[:2], *(three[2:] - 1)]

    run(open_world, 2, program)


def test_what_a_computation_waits_for_can_be_sent(open_world: OpenWorld) -> None:
    """A message follows what puts its elements in place, and not a computation that reads them, too, and more."""

    def program(rank: int) -> None:
        y, z, other = (torch.full((3,), k, device="cuda") for k in (1.0, 1.0, 0.0))
        if rank == 1:
            dist.recv(other, 0)
            dist.all_reduce(y)
            dist.recv(other, 0)
            assert other.tolist() == [2.0] * 3
            dist.all_reduce(z)
        else:
            works = [dist.all_reduce(t, async_op=True) for t in (y, z)]
            for work in works:
                work.wait()
            both = y + z  # before rank 1 has joined
            dist.send(other, 1)
            dist.isend(y, 1)
            assert both.tolist() == [4.0] * 3

    run(open_world, 2, program)


def test_the_core_first_hears_of_an_empty_part(open_world: OpenWorld) -> None:
    """An operation that is under way is waited for, whichever part the core has been told of first."""

    def program(rank: int) -> None:
        x = torch.full((4,), float(rank + 1))
        dist.all_reduce(x[:0])
        dist.all_reduce(x)
        assert [e.item() for e in x] == [3.0] * 4

    run(open_world, 2, program)


def test_ranks_share_a_tensor(open_world: OpenWorld) -> None:
    """One that has waited for its part does not make another forget to wait for its own."""
    shared: list[torch.Tensor] = []

    def program(rank: int) -> None:
        if not shared:
            shared.append(torch.zeros(2, 2, device="cpu"))
        x, token = shared[0], torch.zeros(1)
        match rank:
            case 0:
                dist.irecv(x[0], 2)
                assert x[0].tolist() == [5.0, 5.0]
                dist.send(token, 1)
            case 1:
                dist.irecv(x[1], 2)  # while rank 0 waits
                dist.recv(token, 0)
                assert x[1].tolist() == [6.0, 6.0]
            case 2:
                dist.send(torch.full((2,), 5.0), 0)
                dist.send(torch.full((2,), 6.0), 1)

    run(open_world, 3, program)
