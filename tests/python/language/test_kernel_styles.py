"""Collectives in the styles of other systems: put-with-signal libraries, copy engines, queue pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_worlds import run

import torchemu
import torchemu as torch
import torchemu.language as tl

WORLDS = [1, 2, 3, 5, 8]


@torchemu.kernel
def ring(data: Any, n: int, put: str) -> None:
    """An all-reduce of world chunks, n elements of each for each block: reduce-scatter and all-gather, by puts to the
    next rank."""
    rank, world, block, blocks = tl.rank(), tl.world_size(), tl.program_id(), tl.num_programs()
    following = (rank + 1) % world
    slots = tl.workspace("slots", world * blocks * n, data.dtype)
    words = tl.workspace("words", 2 * world * blocks, torch.int64)

    def chunk(i: int) -> Any:
        return data + (i % world * blocks + block) * n

    def send(to: Any, source: Any, step: int) -> None:
        word = words.on(following) + (step * blocks + block)
        if put == "putmem_signal":
            tl.put_signal(to.on(following), source, n, word)
        elif put == "putmem_signal_nbi":
            tl.put_signal_nbi(to.on(following), source, n, word, 1, "set")
        elif put == "putmem, fence, signal":
            tl.put(to.on(following), source, n)
            tl.fence()
            tl.signal(word)
        else:
            tl.put_nbi(to.on(following), source, n)
            tl.quiet()
            tl.signal(word)
        tl.wait(words + (step * blocks + block), tl.GE, 1)

    tl.sync()
    for step in range(world - 1):
        slot = slots + (step * blocks + block) * n
        send(slot, chunk(rank - step), step)
        mine = chunk(rank - step - 1)
        tl.store(mine, tl.load(slot, n) + tl.load(mine, n))
        tl.drain()
    for step in range(world - 1):
        send(chunk(rank + 1 - step), chunk(rank + 1 - step), world - 1 + step)


PUTS = ["putmem_signal", "putmem_signal_nbi", "putmem, fence, signal", "putmem_nbi, quiet, signal"]


@pytest.mark.parametrize("reorder", [None, 3])
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("put", PUTS)
def test_ring_by_puts_with_signals(put: str, world: int, reorder: int | None) -> None:
    blocks, n = 3, 5
    values = np.random.default_rng(world).integers(-1000, 1000, (world, world * blocks * n))

    def rank(r: int) -> None:
        data = tl.symmetric_empty(world * blocks * n, dtype=torch.int64)
        data.copy_(torch.from_numpy(values[r]))
        ring[blocks](data, n, put)
        np.testing.assert_array_equal(data.numpy(), values.sum(0))

    run(world, rank, reorder=reorder)


@torchemu.kernel
def pushed(out: Any, x: Any, n: int) -> None:
    """Copies to all, by engines that know no order; who has the data is told when its copy is complete."""
    rank, world = tl.rank(), tl.world_size()
    words = tl.workspace("words", world, torch.int64)
    copies = [(peer, tl.copy_async(out.on(peer) + rank * n, x, n)) for peer in range(world)]
    for peer, copy in copies:
        copy.wait()
        tl.signal(words.on(peer) + rank)
    for peer in range(world):
        tl.wait(words + peer, tl.GE, tl.call_number())


@torchemu.kernel
def posted(out: Any, x: Any, n: int) -> None:
    """A queue pair for each program of the grid: it posts a write and what tells of it for each of its peers."""
    rank, world = tl.rank(), tl.world_size()
    words = tl.workspace("words", world, torch.int64)
    for peer in range(tl.program_id(), world, tl.num_programs()):
        tl.put_nbi(out.on(peer) + rank * n, x, n)
        tl.fence()
        tl.signal(words.on(peer) + rank)
    tl.quiet()
    for peer in range(world):
        while not tl.test(words + peer, tl.GE, tl.call_number()):
            pass


@pytest.mark.parametrize("reorder", [None, 3])
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("how", ["copy engines", "queue pairs"])
def test_all_gather_by_engines(how: str, world: int, reorder: int | None) -> None:
    kernel, blocks = {"copy engines": (pushed, 1), "queue pairs": (posted, 2)}[how]

    def rank(r: int) -> None:
        out, x = tl.symmetric_empty(world * 7), torch.arange(7) * 100.0 + r
        kernel[blocks](out, x, 7)
        expected = [100.0 * i + peer for peer in range(world) for i in range(7)]
        assert out.tolist() == expected

    run(world, rank, reorder=reorder)


def test_a_copy_that_is_not_complete_is_found() -> None:
    @torchemu.kernel
    def early(out: Any, x: Any, n: int) -> None:
        tl.copy_async(out, x, n)
        tl.load(out, n)

    def rank(r: int) -> None:
        out = tl.symmetric_empty(7)
        early[1](out, torch.zeros(7), 7)
        out.wait()

    with pytest.raises(torch.multiprocessing.ProcessRaisedException, match="the copy may not have landed: a quiet"):
        run(1, rank)
