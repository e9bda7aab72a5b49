"""The doors to ccl/prim that pybind/prim*.go opens: machines whose programs Python drives."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from torchemu.bridge.binding import go
from torchemu.errors import DeadlockError, RaceError

EQ, GE = 0, 3
VECTOR = ""

Program = Generator[bool, None, None]
"""A program yields whether the operation that it has called is blocked."""


@contextmanager
def machine(ranks: int, check: bool = False, reorder: bool = False, seed: int = 0) -> Iterator[int]:
    m = go.PrimOpen("default", ranks, check, reorder, seed)
    try:
        yield m
    finally:
        go.PrimClose(m)


def run(m: int, make: Callable[[int], Program], computations: dict[int, Callable[[], None]] | None = None) -> None:
    """Runs programs until all have ended: the smallest possible driver."""
    programs: dict[int, Program] = {}
    while turn := go.PrimNext(m):
        if turn == -1:
            continue
        if turn < -1:
            assert computations is not None
            computations.pop(-2 - turn)()
            go.PrimComputed(m)
            continue
        program = programs.setdefault(turn, make(turn))
        if not any(program):  # until an operation is blocked
            go.PrimEnd(turn, "")


def window(m: int, ranks: int, nbytes: int) -> list[int]:
    """The address of a window on each rank."""
    w = go.PrimAllocate(m, "w", range(ranks), nbytes)
    return [go.PrimAddress(w, r, 0) for r in range(ranks)]


def write(m: int, at: int, data: np.ndarray) -> None:
    go.PrimWrite(m, at, data.ctypes.data, data.nbytes)


def read(m: int, at: int, like: np.ndarray) -> np.ndarray:
    out = np.empty_like(like)
    go.PrimRead(m, at, out.ctypes.data, out.nbytes)
    return out


def test_put_signal_and_wait() -> None:
    data = np.arange(64, dtype=np.float32)
    with machine(2, check=True) as m:
        w = window(m, 2, 1024)
        write(m, w[0], data)
        line = go.PrimLine(m, "here.py:3")

        def body(p: int) -> Program:
            rank = go.PrimAbout(p)[0]
            if rank == 0:
                yield go.PrimPut(p, line, w[1], w[0], 256, True, w[1] + 512, 8, 0, 1)
            else:
                yield go.PrimWait(p, line, w[1] + 512, 8, GE, 1, False)
                yield go.PrimPut(p, line, w[1] + 256, w[1], 256, True, 0, 0, 0, 0)
                yield go.PrimOrder(p, line, "quiet")

        job = go.PrimSubmit(m, "pass", (0, 1), 1, False, ())
        run(m, body)
        go.PrimSettle(m, False)
        assert go.PrimEnded(job)
        assert np.array_equal(read(m, w[1] + 256, data), data)
        assert go.PrimNow(m) > 0


def test_results_are_made_when_instructions_are_due() -> None:
    """A computation reads what its operand is when it runs: here, what a load that was issued before it has brought."""
    data = np.linspace(-1, 1, 32, dtype=np.float32)
    computations: dict[int, Callable[[], None]] = {}
    scratch = np.zeros(go_scratch_bytes(), np.uint8)
    with machine(1, check=True) as m:
        w = window(m, 1, 1024)
        write(m, w[0], data)

        def body(p: int) -> Program:
            at = go.PrimScratch(p, scratch.ctypes.data, scratch.nbytes)
            tiles = scratch[:256].view(np.float32)
            yield go.PrimLoad(p, 0, at, w[0], 128)
            number = go.PrimCompute(p, 0, "exp", VECTOR, 0, at + 128, 128, (at, 128))
            computations[number] = lambda: tiles[32:].__setitem__(slice(None), np.exp(tiles[:32]))
            assert not tiles.any()  # nothing has run yet
            yield go.PrimStore(p, 0, w[0] + 512, at + 128, 128)
            yield go.PrimOrder(p, 0, "pipe_barrier")

        go.PrimSubmit(m, "exp", (0,), 1, True, ())
        run(m, body, computations)
        go.PrimSettle(m, False)
        assert np.array_equal(read(m, w[0] + 512, data), np.exp(data))


def go_scratch_bytes() -> int:
    with machine(1) as m:
        return go.PrimScratchBytes(m)


@pytest.mark.parametrize("interlock", [False, True])
def test_without_interlock_the_pipes_race(interlock: bool) -> None:
    with machine(1, check=True) as m:
        w = window(m, 1, 1024)
        write(m, w[0], np.ones(256, np.uint8))

        def body(p: int) -> Program:
            at = go.PrimScratch(p, 0, 0)
            yield go.PrimLoad(p, go.PrimLine(m, "k.py:1"), at, w[0], 256)
            yield go.PrimStore(p, go.PrimLine(m, "k.py:2"), w[0] + 512, at, 256)
            yield go.PrimOrder(p, 0, "pipe_barrier")

        go.PrimSubmit(m, "copy", (0,), 1, interlock, ())
        run(m, body)
        if interlock:
            go.PrimSettle(m, False)
            assert read(m, w[0] + 512, np.zeros(256, np.uint8)).all()
            return
        with pytest.raises(RaceError, match=r"k\.py:1.*\n.*k\.py:2|k\.py:2.*\n.*k\.py:1"):
            go.PrimSettle(m, False)
        kinds = {f["kind"] for f in json.loads(go.PrimFindings(m))}
        assert kinds & {"unordered read", "read of unwritten memory"}


@pytest.mark.parametrize("kind", ["phase", "sense", "credit"])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_barriers(kind: str, ranks: int) -> None:
    """Each rank counts to three; a barrier lets nobody be a round ahead."""
    counts = [0] * ranks
    with machine(ranks, check=True) as m:
        barrier = go.PrimBarrier(m, "b", range(ranks), kind)

        def body(p: int) -> Program:
            rank = go.PrimAbout(p)[0]
            for _ in range(3):
                counts[rank] += 1
                while go.PrimSync(p, 0, barrier):
                    yield True
                assert min(counts) == counts[rank] or max(counts) - min(counts) <= 1

        go.PrimSubmit(m, "count", range(ranks), 1, False, ())
        run(m, body)
        go.PrimSettle(m, False)
    assert counts == [3] * ranks


def test_a_deadlock_names_kernel_rank_line_and_word() -> None:
    with machine(2) as m:
        w = window(m, 2, 512)

        def body(p: int) -> Program:
            if go.PrimAbout(p)[0] == 1:
                yield go.PrimWait(p, go.PrimLine(m, "mine.py:7"), w[1], 4, EQ, 5, False)

        go.PrimSubmit(m, "stuck", (0, 1), 1, False, ())
        with pytest.raises(
            DeadlockError, match=r'kernel "stuck" on rank 1 at mine\.py:7 waits for .* to be EQ 5; it is 0'
        ):
            run(m, body)


def test_traffic_after_a_free_is_named() -> None:
    with machine(2, check=True) as m:
        kept = go.PrimAllocate(m, "kept", (0, 1), 512)
        brief = go.PrimAllocate(m, "brief", (0, 1), 512)
        write(m, go.PrimAddress(kept, 0, 0), np.ones(64, np.float32))

        def body(p: int) -> Program:
            put = go.PrimLine(m, "late.py:4")
            yield go.PrimPut(p, put, go.PrimAddress(brief, 1, 64), go.PrimAddress(kept, 0, 0), 256, False, 0, 0, 0, 0)
            go.PrimFree(brief)

        go.PrimSubmit(m, "late", (0,), 1, False, ())
        with pytest.raises(RaceError) as caught:
            run(m, body)
            go.PrimSettle(m, False)
    assert str(caught.value) == (
        'traffic after free: window "brief" of rank 1, byte 64\n'
        '  put_nbi by kernel "late" on rank 0 at late.py:4, bytes 64 to 320\n'
        "  missing: the window is freed before this is over: a quiet at the sender, or a barrier of all its users, is "
        "missing before the free"
    )


def test_queues_and_atomics() -> None:
    with machine(2, check=True) as m:
        w = window(m, 2, 1024)
        q = go.PrimQueue(m, "q", 0, 1, 2, 8)
        write(m, w[0], np.arange(5, dtype=np.int64))
        got = []

        def body(p: int) -> Program:
            if go.PrimAbout(p)[0] == 0:
                for i in range(5):
                    yield go.PrimSend(p, 0, q, w[0] + 8 * i, 8)
                return
            for i in range(5):
                yield go.PrimRecv(p, 0, q, w[1] + 8 * i, 8)
                got.append(go.PrimResult(p))
            yield go.PrimAtomic(p, 0, "add", w[0] + 512, 8, 0, 40, 2)
            got.append(go.PrimResult(p))
            yield go.PrimAtomic(p, 0, "compare_swap", w[0] + 512, 8, 40, 2, 2)
            got.append(go.PrimResult(p))
            yield go.PrimAtomic(p, 0, "fetch", w[0] + 512, 8, 0, 0, 2)
            got.append(go.PrimResult(p))

        go.PrimSubmit(m, "k", (0, 1), 1, False, ())
        run(m, body)
        go.PrimSettle(m, False)
        assert got == [8] * 5 + [0, 40, 2]
        assert read(m, w[1], np.zeros(5, np.int64)).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "misuse",
    [
        lambda p, w: go.PrimPut(p, 1, w + 400, w, 200, True, 0, 0, 0, 0),
        lambda p, w: go.PrimPut(p, 1, 12345, w, 8, True, 0, 0, 0, 0),
        lambda p, w: go.PrimLoad(p, 1, go.PrimScratch(p, 0, 0) + (1 << 30), w, 8),
        lambda p, w: go.PrimWait(p, 1, w + 1, 4, GE, 1, False),
        lambda p, w: go.PrimWait(p, 1, w, 4, 9, 1, False),
        lambda p, w: go.PrimPut(p, 1, w, w, -1, True, 0, 0, 0, 0),
        lambda p, w: go.PrimCombine(p, 1, "sum", "float32", *[go.PrimScratch(p, 0, 0)] * 3, 3),
        lambda p, w: go.PrimCombine(p, 1, "band", "float32", *[go.PrimScratch(p, 0, 0)] * 3, 4),
        lambda p, w: go.PrimFlag(p, 1, True, 1, 1, 0),
        lambda p, w: go.PrimFlag(p, 1, True, 9, 1, 0),
    ],
)
def test_misuse_is_a_value_error(misuse: Callable[[int, int], object]) -> None:
    with machine(1) as m:
        w = window(m, 1, 512)[0]
        go.PrimLine(m, "wrong.py:1")

        def body(p: int) -> Program:
            with pytest.raises(ValueError):
                misuse(p, w)
            yield False

        go.PrimSubmit(m, "k", (0,), 1, False, ())
        run(m, body)


def test_tasks_follow_each_other() -> None:
    order = []
    with machine(2) as m:
        first = go.PrimSubmit(m, "first", (0,), 1, False, ())
        second = go.PrimSubmit(m, "second", (1,), 1, False, (first,))

        def body(p: int) -> Program:
            order.append(go.PrimAbout(p))
            yield go.PrimOrder(p, 0, "quiet")

        run(m, body)
        assert go.PrimEnded(second)
    assert order == [[0, 0, 1, first], [1, 0, 1, second]]


@pytest.mark.parametrize("n", [2, 4])
def test_examples_in_go(n: int) -> None:
    """The published one-phase all-reduce: own first, then the others ascending, in float32."""
    count = 256
    rng = np.random.default_rng(n)
    x = rng.standard_normal((n, count)).astype(np.float32)
    with machine(n, check=True) as m:
        name = next(e for e in json.loads(go.PrimExamples()) if "allreduce" in e and "one" in e)
        scratch = window(m, n, go.PrimExampleBytes(name, n, count))
        ins, outs = window(m, n, 4 * count), window(m, n, 4 * count)
        for r in range(n):
            write(m, ins[r], x[r])
            about = [n, r, count, 0, ins[r], outs[r], scratch[r], *range(n)]
            go.PrimSubmitExample(m, "all_reduce", name, (r,), about, ())
        while turn := go.PrimNext(m):
            assert turn == -1  # a task in Go has ended
        go.PrimSettle(m, False)
        for r in range(n):
            want = x[r].copy()
            for other in itertools.chain(range(r), range(r + 1, n)):
                want = x[other] + want
            assert np.array_equal(read(m, outs[r], want), want)


def test_a_cancelled_task_lets_the_next_one_start() -> None:
    with machine(1) as m:
        w = window(m, 1, 512)[0]
        job = go.PrimSubmit(m, "stuck", (0,), 1, False, ())
        p = go.PrimNext(m)
        assert go.PrimWait(p, 0, w, 8, GE, 1, False)
        go.PrimCancel(job)
        after = go.PrimSubmit(m, "next", (0,), 1, False, ())
        run(m, lambda p: (go.PrimOrder(p, 0, k) for k in ("quiet", "pipe_barrier")))
        assert go.PrimEnded(after)
        with pytest.raises(RuntimeError, match="has ended"):
            go.PrimResult(p)
