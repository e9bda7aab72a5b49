"""Launches of kernels: their order with what else is on a stream, and what they do with each other."""

from __future__ import annotations

from typing import Any

import pytest
from kernel_worlds import run, world_of

import torchemu
import torchemu as torch
import torchemu.language as tl
from torchemu.runtime.waiting import host_time

pytestmark = pytest.mark.shows("programs: kernels in torchemu.language")

WORLDS = [1, 2, 3, 4, 8, 16]


@pytest.mark.parametrize("blocks", [1, 2, 5, 16])
def test_programs_of_a_grid(blocks: int) -> None:
    @torchemu.kernel
    def fill(out: Any, n: int) -> None:
        assert tl.num_programs() == blocks
        tl.store(out + tl.program_id() * n, tl.full(n, tl.program_id(), out.dtype))

    with world_of(1):
        out = torch.full((blocks * 8,), -1, dtype=torch.int32)
        fill[blocks](out, 8)
        assert out.tolist() == [i for i in range(blocks) for _ in range(8)]


def test_programs_of_a_grid_run_side_by_side() -> None:
    @torchemu.kernel
    def busy(x: Any, n: int) -> None:
        t = tl.load(x, n)
        for _ in range(20):
            t = t + t

    def time_of(blocks: int) -> int:
        with world_of(1):
            x = torch.zeros(4096)
            busy[blocks](x, 4096)
            x.wait()
            return host_time()

    assert time_of(4) < 2 * time_of(1)


def test_a_kernel_follows_what_is_on_its_stream() -> None:
    """And what follows it finds its results: kernels, collectives and operations take turns."""

    @torchemu.kernel
    def add_one(x: Any, n: int) -> None:
        tl.store(x, tl.load(x, n) + 1)

    def rank(r: int) -> None:
        torch.distributed.init_process_group()
        x = torch.full((64,), float(r))
        x.mul_(2)
        add_one[1](x, 64)
        torch.distributed.all_reduce(x)
        add_one[1](x, 64)
        x.mul_(3)
        add_one[1](x, 64)
        assert x.tolist() == [3 * (2 * 6 + 4 + 1) + 1] * 64

    run(4, rank)


def test_reading_on_the_host_waits_for_the_end() -> None:
    @torchemu.kernel
    def slow(x: Any, n: int) -> None:
        t = tl.load(x, n)
        for _ in range(100):
            t = t + 1
        tl.store(x, t)

    with world_of(1):
        x = torch.zeros(1024)
        before = host_time()
        slow[1](x, 1024)
        issued = host_time()
        assert x[3].item() == 100
        assert issued - before < 10_000_000 < host_time() + 10_000_000 - issued
        assert host_time() - issued > 100 * 1000  # a nanosecond for each addition at least


def test_views_and_offsets() -> None:
    @torchemu.kernel
    def copy(out: Any, x: Any, n: int) -> None:
        tl.store(out, tl.load(x, n))

    with world_of(1):
        x = torch.arange(100, dtype=torch.float32)
        out = torch.zeros(100)
        copy[1](out[50:60], x[7:17], 10)
        assert out.tolist() == [0.0] * 50 + list(range(7, 17)) + [0.0] * 40


@pytest.mark.parametrize("n", [0, 1, 7, 100_003])
def test_sizes_of_loads_and_stores(n: int) -> None:
    @torchemu.kernel
    def copy(out: Any, x: Any, n: int, step: int) -> None:
        for lo in range(0, n, step):
            m = min(step, n - lo)
            tl.store(out + lo, tl.load(x + lo, m))

    with world_of(1):
        x = torch.arange(n, dtype=torch.float32)
        out = torch.zeros(n)
        copy[1](out, x, n, 4096)
        assert out.tolist() == list(range(n))


# -- between ranks


@pytest.mark.parametrize("ranks", WORLDS)
@pytest.mark.parametrize("reorder", [None, 1, 2])
def test_a_ring_of_signals(ranks: int, reorder: int | None) -> None:
    @torchemu.kernel
    def shift(out: Any, x: Any, words: Any, n: int) -> None:
        following = (tl.rank() + 1) % tl.world_size()
        tl.put_signal(out.on(following), x, n, words.on(following))
        tl.wait(words, tl.GE, 1)

    def rank(r: int) -> None:
        out, words = tl.symmetric_empty(33), tl.symmetric_empty(1, dtype=torch.int64)
        shift[1](out, torch.full((33,), float(r)), words, 33)
        assert out.tolist() == [float((r - 1) % ranks)] * 33

    run(ranks, rank, reorder=reorder)


@pytest.mark.parametrize("ranks", [2, 4])
def test_atomics_and_queues(ranks: int) -> None:
    olds: list[int] = []

    @torchemu.kernel
    def count(words: Any, data: Any) -> None:
        olds.append(tl.atomic_add(words.on(0), 1))
        before, after = (tl.rank() - 1) % tl.world_size(), (tl.rank() + 1) % tl.world_size()
        for _ in range(3):
            tl.send(tl.queue("q", tl.rank(), after, 1, 4, data.dtype), data, 4)
            got = tl.recv(tl.queue("q", before, tl.rank(), 1, 4, data.dtype), data + 4, 8)
            assert got == 4
        tl.barrier()
        assert tl.fetch(words.on(0)) == tl.world_size()
        if tl.rank() == 0:
            assert tl.atomic_cas(words, tl.world_size(), 77) == tl.world_size()
            assert tl.atomic_exchange(words, 5) == 77

    def rank(r: int) -> None:
        words = tl.symmetric_empty(1, dtype=torch.int32)
        data = torch.full((12,), float(r))
        count[1](words, data)
        assert data.tolist()[4:8] == [float((r - 1) % ranks)] * 4

    run(ranks, rank, check=False)
    assert sorted(olds) == list(range(ranks))


def test_copies_gets_and_reducing_puts() -> None:
    @torchemu.kernel
    def body(total: Any, x: Any, near: Any, n: int) -> None:
        tl.put_reduce(total.on(0), x, n, "sum")
        tl.barrier()
        other = (tl.rank() + 1) % tl.world_size()
        tl.get(near, total.on(0), n)
        event = tl.copy_async(near + n, total.on(0), n)
        event.wait()
        tl.put_nbi(near + 2 * n, total.on(0) if tl.rank() == 0 else near, n)
        tl.quiet()
        assert other != tl.rank()

    def rank(r: int) -> None:
        total, near = tl.symmetric_empty(16), torch.zeros(48)
        body[1](total, torch.full((16,), float(r + 1)), near, 16)
        assert near.tolist() == [10.0] * 48

    run(4, rank)


def test_kernels_without_interlock_need_flags() -> None:
    @torchemu.kernel(interlock=False)
    def flags(out: Any, x: Any, n: int) -> None:
        t = tl.load(x, n)
        tl.set_flag("load", "vector")
        tl.wait_flag("load", "vector")
        doubled = t + t
        tl.set_flag("vector", "store", 3)
        tl.wait_flag("vector", "store", 3)
        tl.store(out, doubled)

    @torchemu.kernel(interlock=False)
    def without(out: Any, x: Any, n: int) -> None:
        t = tl.load(x, n)
        tl.store(out, t)
        tl.drain()

    with world_of(1):
        out, x = torch.zeros(64), torch.ones(64)
        flags[1](out, x, 64)
        assert out.tolist() == [2.0] * 64
        without[1](out, x, 64)
        with pytest.raises(torchemu.errors.RaceError, match=r"store by kernel \"without\".*test_kernels\.py:\d+"):
            out.tolist()


def test_launches_among_the_ranks_of_a_group() -> None:
    """Ranks, symmetric memory, workspaces and syncs are the group's."""

    @torchemu.kernel
    def gather(out: Any, x: Any) -> None:
        words = tl.workspace("words", 1, torch.int64)
        tl.sync()
        for peer in range(tl.world_size()):
            tl.put_signal(out.on(peer) + tl.rank(), x, 1, words.on(peer))
        tl.wait(words, tl.GE, tl.world_size() * tl.call_number())

    def rank(r: int) -> None:
        torch.distributed.init_process_group()
        groups = [torch.distributed.new_group(ranks) for ranks in ([0, 3, 4], [1, 2])]
        mine = groups[r in (1, 2)]
        out = tl.symmetric_empty(3, group=mine)
        gather[1, mine](out, torch.full((1,), float(r)))
        assert out.tolist() == ([0.0, 3.0, 4.0] if mine is groups[0] else [1.0, 2.0, 0.0])
        with pytest.raises(TypeError, match="among the ranks of a process group, not of -100"):
            gather[1, groups[mine is groups[0]]](out, out)

    run(5, rank)
