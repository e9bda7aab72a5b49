"""Instructions of kernels in Python, one by one, against what they say they do."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest
from conftest import OpenWorld
from simpler_cases import IN, INOUT, OUT, called, domain, run, tensor, window, working, written

from torchemu import pto
from torchemu.errors import DeadlockError
from torchemu.frontends.simpler.orchestrator import Orchestrator
from torchemu.frontends.simpler.worker import RunTiming
from torchemu.runtime import Strictness

HEAD = """
    from torchemu.pto import *

    def kernel_entry(args):
        x, y, scratch = (t.ptr() for t in args[:3])
        n, ctx = args[3], CommContext(args[4])
        me, right, left = ctx.rankId, (ctx.rankId + 1) % n, (ctx.rankId - 1) % n
        t = [Tile(1, 8) for _ in range(3)]
        for i in range(3):
            TASSIGN(t[i], 0x1000 * i)

        def span(pointer, elements=8):
            return GlobalTensor(pointer, (elements,))
"""
"""The beginning of all kernels here: eight numbers x and y, and a window of 1024 bytes."""


def kernel(body: str) -> str:
    return HEAD + textwrap.indent(textwrap.dedent(body), " " * 8)


def outcome(body: str, tmp_path: Path, open_world: OpenWorld, chips: int = 3) -> tuple[np.ndarray, RunTiming]:
    """Returns what y is on each chip, where x was 8·rank + 0, 1, …; and the time."""
    open_world().strictness = Strictness(check=True)
    x = [tensor(np.arange(8) + 8 * i) for i in range(chips)]
    y = [tensor(np.full(8, -1)) for _ in range(chips)]

    def build(orch: Orchestrator) -> None:
        seen = domain(orch, list(range(chips)), nbytes=1024)
        for i in range(chips):
            args = called((x[i], IN), (y[i], OUT), (window(seen[i]), INOUT), chips, seen[i].device_ctx)
            orch.submit_next_level(cid, args, worker=i)

    with working(chips) as worker:
        cid = worker.register(written(tmp_path, kernel(body)))
        timing = run(worker, build)
    return np.stack([t.numpy() for t in y]), timing


X = np.arange(24, dtype=np.float32).reshape(3, 8)


def test_context(tmp_path: Path, open_world: OpenWorld) -> None:
    body = """
        assert ctx.rankNum == n == 3 and ctx.winSize == 1024
        assert ctx.windowsIn == ctx.windowsOut and len(set(ctx.windowsIn)) == 3
        assert ctx.windowsIn[me] == scratch.addr
        assert CommRemotePtr(ctx, scratch + 5, me) == scratch + 5
        far = CommRemotePtr(ctx, (scratch + 5).cast(int32), right)
        assert (far.addr, far.dtype) == (ctx.windowsIn[right] + 20, int32)
        assert args[0].shapes == (8,) and args[0].strides == (1,) and args[0].start_offset == 0
        assert (scratch + 3) - 3 == scratch
    """
    outcome(body, tmp_path, open_world)


def test_arithmetic(tmp_path: Path, open_world: OpenWorld) -> None:
    body = """
        TLOAD(t[0], span(x))
        pipe_barrier(PIPE_MTE2)
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
        TADD(t[1], t[0], t[0])
        TMUL(t[1], t[1], t[0])
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID1)
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID1)
        TSTORE(span(y), t[1])
    """
    got, timing = outcome(body, tmp_path, open_world)
    np.testing.assert_array_equal(got, 2 * X * X)
    assert timing.host_wall_us > 0


def test_matrices(tmp_path: Path, open_world: OpenWorld) -> None:
    """2x3 times 3x2, the latter in the first six numbers."""
    body = """
        a, b, c = Tile(2, 3), Tile(3, 2), Tile(2, 2)
        for tile, place in ((a, 0x8000), (b, 0x9000), (c, 0xA000)):
            TASSIGN(tile, place)
        TLOAD(a, span(x, 6))
        TLOAD(b, span(x + 2, 6))
        pipe_barrier(PIPE_ALL)
        TMATMUL(c, a, b)
        pipe_barrier(PIPE_ALL)
        TSTORE(span(y, 4), c)
    """
    got, _ = outcome(body, tmp_path, open_world)
    for row, x in zip(got, X, strict=True):
        np.testing.assert_array_equal(row[:4].reshape(2, 2), x[:6].reshape(2, 3) @ x[2:].reshape(3, 2))
        np.testing.assert_array_equal(row[4:], -1)


MEET = """
        def meet(row):
            words = (scratch + 64).cast(int32)
            dsb()
            for peer in range(n):
                if peer != me:
                    there = CommRemotePtr(ctx, words + 16 * row + me, peer)
                    TNOTIFY(Signal(there), 1, NotifyOp.AtomicAdd)
            for peer in range(n):
                if peer != me:
                    TWAIT(Signal(words + 16 * row + peer), 1, WaitCmp.GE)
"""


def test_put(tmp_path: Path, open_world: OpenWorld) -> None:
    body = (
        MEET
        + """
        TPUT(span(CommRemotePtr(ctx, scratch, right)), span(x), t[0])
        meet(0)
        TLOAD(t[1], span(scratch))
        pipe_barrier(PIPE_ALL)
        TSTORE(span(y), t[1])
    """
    )
    got, _ = outcome(textwrap.dedent(body), tmp_path, open_world)
    np.testing.assert_array_equal(got, np.roll(X, 1, axis=0))


def test_put_that_adds(tmp_path: Path, open_world: OpenWorld) -> None:
    """Of all chips into chip 0's window: no addition is lost."""
    body = (
        MEET
        + """
        TPUT(span(CommRemotePtr(ctx, scratch, 0)), span(x), t[0], AtomicType.AtomicAdd)
        meet(0)
        TGET(span(y), span(CommRemotePtr(ctx, scratch, 0)), t[0])
    """
    )
    got, _ = outcome(textwrap.dedent(body), tmp_path, open_world)
    np.testing.assert_array_equal(got, np.stack([X.sum(axis=0)] * 3))


def test_get_and_remote_stores(tmp_path: Path, open_world: OpenWorld) -> None:
    body = (
        MEET
        + """
        TLOAD(t[0], span(x))
        pipe_barrier(PIPE_ALL)
        TSTORE(span(CommRemotePtr(ctx, scratch, left)), t[0])
        pipe_barrier(PIPE_ALL)
        meet(0)
        TGET(span(y), span(CommRemotePtr(ctx, scratch, right)), t[0])
    """
    )
    got, _ = outcome(textwrap.dedent(body), tmp_path, open_world)
    np.testing.assert_array_equal(got, np.roll(X, -2, axis=0))


@pytest.mark.parametrize(
    ("op", "sent", "cmp", "value", "holds"),
    [
        ("AtomicAdd", 3, "EQ", 6, True),
        ("AtomicAdd", 3, "NE", 6, False),
        ("AtomicAdd", 3, "GT", 6, False),
        ("AtomicAdd", 3, "GE", 6, True),
        ("AtomicAdd", -3, "LT", -5, True),
        ("AtomicAdd", -3, "LE", -7, False),
        ("Set", 3, "EQ", 3, True),
        ("Set", -1, "LT", 0, True),
    ],
)
def test_signals(op: str, sent: int, cmp: str, value: int, holds: bool, tmp_path: Path, open_world: OpenWorld) -> None:
    """One chip or two signal a word of chip 0, and then another one, by which it knows that they have."""
    senders = [1, 2] if op == "AtomicAdd" else [1]
    body = f"""
        word, over = (Signal(CommRemotePtr(ctx, (scratch + i).cast(int32), 0)) for i in (64, 65))
        senders = {senders}
        if me in senders:
            TNOTIFY(word, {sent}, NotifyOp.{op})
            TNOTIFY(over, 2 // len(senders), NotifyOp.AtomicAdd)
        if me == 0:
            assert not TTEST(over, 2, WaitCmp.EQ)
            TWAIT(over, 2, WaitCmp.GE)
            assert TTEST(word, {value}, WaitCmp.{cmp}) is {holds}
            both = Signal(word.ptr, 2)
            assert TTEST(both, 1, WaitCmp.GE) is {sent > 0}
            TWAIT(both, -100, WaitCmp.GT)
    """
    outcome(body, tmp_path, open_world)


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ("TLOAD(t[0], span(x, 7))", ValueError, "TLOAD: 28 bytes for 32"),
        ("TSTORE(span(y, 9), t[0])", ValueError, "TSTORE: 32 bytes for 36"),
        ("TADD(t[0], Tile(1, 7), t[1])", ValueError, "TADD: 28 bytes for 32"),
        ("TMATMUL(Tile(2, 2), Tile(2, 3), Tile(2, 3))", ValueError, "2x2 = 2x3 · 2x3 does not fit"),
        ("TLOAD(Tile(1, 8), span(x))", RuntimeError, r"TASSIGN\(tile, offset\) gives it one"),
        ("TASSIGN(t[0], -4)", ValueError, "a tile of 32 bytes at -4: scratch memory has"),
        ("TASSIGN(t[0], 1 << 40)", ValueError, "scratch memory has"),
        ("TLOAD(t[0], span(x + 1))", ValueError, "own_kernel.py:14: .* reach beyond"),
        ("TLOAD(t[0], span(Ptr(12345)))", ValueError, "own_kernel.py:14:"),
        (
            "TWAIT(Signal(CommRemotePtr(ctx, scratch, right)), 1, WaitCmp.GE)",
            ValueError,
            "only for words of its own rank",
        ),
        ("CommContext(x.addr)", ValueError, "1056 bytes from .* reach beyond"),
        ("CommRemotePtr(ctx, scratch, 3)", IndexError, "range"),
        ("set_flag(PIPE_ALL, PIPE_V, EVENT_ID0)", ValueError, "pipes are 0 to 4"),
    ],
)
def test_wrong_use(body: str, kind: type[Exception], said: str, tmp_path: Path, open_world: OpenWorld) -> None:
    with pytest.raises(kind, match=said) as caught:
        outcome(body, tmp_path, open_world)
    assert caught.value.__notes__ == ['in kernel "own_kernel #1" on rank 0']


@pytest.mark.slow
def test_polling_for_ever_ends(tmp_path: Path, open_world: OpenWorld) -> None:
    with pytest.raises(DeadlockError) as caught:
        outcome("while not TTEST(Signal((scratch + 64).cast(int32)), 1, WaitCmp.GE): pass", tmp_path, open_world)
    assert '"own_kernel #1" on rank 0 at own_kernel.py:' in str(caught.value)
    assert "a test of the word at rank 0" in str(caught.value)
    assert "to be GE 1; it is 0" in str(caught.value)


def test_instructions_are_for_kernels() -> None:
    with pytest.raises(RuntimeError, match="can be used in kernels only"):
        pto.TLOAD(pto.Tile(1, 8), pto.GlobalTensor(pto.Ptr(0), (8,)))
    with pytest.raises(RuntimeError, match="can be used in kernels only"):
        pto.CommContext(0)


def test_kernels_do_not_wait_for_their_host(tmp_path: Path, open_world: OpenWorld) -> None:
    body = """
        import torchemu
        big = torchemu.ones(1 << 16)
        (big @ big).item()
    """
    said = r"kernel \"own_kernel #1\" on rank 0 uses an operation of its host at own_kernel.py:\d+: big = torchemu.ones"
    with pytest.raises(RuntimeError, match=said):
        outcome(body, tmp_path, open_world)
