"""Collectives of parts of one tensor: none waits for a message that it has nothing to do with."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu.multiprocessing import ProcessRaisedException


@pytest.mark.parametrize("ranks", [2, 4])
def test_halo_is_asked_for_before_a_collective(open_world: OpenWorld, ranks: int) -> None:
    """Each sends a row of the sum, which the halo row that was asked for first is to bring."""
    start = [np.arange(12, dtype=np.float32).reshape(4, 3) + 100 * rank for rank in range(ranks)]
    expected = np.sum(start, axis=0, dtype=np.float32)
    expected[0] = expected[1]

    def program(rank: int) -> None:
        dist.init_process_group()
        x = torch.tensor(start[rank])
        halo = dist.irecv(x[0], (rank - 1) % ranks)
        dist.all_reduce(x[1:])
        sent = dist.isend(x[1], (rank + 1) % ranks)
        halo.wait()
        sent.wait()
        assert np.array_equal(x.numpy(), expected)

    open_world(f"name: some\nsystem: {{sips: {{count: {ranks}}}}}\n")
    on_ranks(ranks, program)


def test_a_collective_of_what_is_to_be_received_is_still_a_deadlock(open_world: OpenWorld) -> None:
    """The sum is of a row that is sent when there is a sum."""

    def program(rank: int) -> None:
        dist.init_process_group()
        x = torch.zeros(4, 3)
        dist.irecv(x[0], 1 - rank)
        dist.all_reduce(x[:2])
        dist.isend(x[1], 1 - rank)
        x.tolist()

    open_world("name: some\nsystem: {sips: {count: 2}}\n")
    with pytest.raises(ProcessRaisedException, match="deadlock at simulated time"):
        on_ranks(2, program)
