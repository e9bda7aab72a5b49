"""Steps of device programs that cross to the core together: they are what the doors do one by one."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from test_prim_doors import EQ, Program, machine, read, run, window

from torchemu.bridge.binding import go
from torchemu.frontends.triton._program import AWAIT, FENCE, LOAD, MEET, PASS, SCATTER, SIGNAL, STORE, TOUCH

READS, WRITES, ATOMIC, SET = 0, 1, 2, 1
DATA = np.arange(32, dtype=np.float32)


def in_process(m: int, at: int) -> int:
    """Returns where an address is in the process."""
    start, place, _ = go.PrimInProcess(m, at)
    return place + at - start


def one_by_one(m: int, p: int, line: int, steps: list[tuple[Any, ...]]) -> Program:
    """Takes steps by the doors that they have themselves."""
    for kind, *args in steps:
        if kind == PASS:
            yield go.PrimPass(p, line, *args)
        elif kind in (FENCE, MEET):
            yield go.PrimOrder(p, line, "fence" if kind == FENCE else "meet")
        elif kind == TOUCH:
            name, at, nbytes, use, threads = args
            yield go.PrimTouch(p, line, name, (at, nbytes), use, bool(threads))
        elif kind == SCATTER:
            name, at, nbytes, place, threads = args
            yield go.PrimScatter(p, line, name, (at, nbytes), place, nbytes, bool(threads))
        elif kind == SIGNAL:
            *signal, _ = args  # which orders both ways, as signals do
            yield go.PrimSignal(p, line, *signal)
        elif kind == LOAD:
            name, at, nbytes, place, threads = args
            ctypes.memmove(place, in_process(m, at), nbytes)
            yield go.PrimTouch(p, line, name, (at, nbytes), READS, bool(threads))
        elif kind == STORE:
            name, at, nbytes, place, threads = args
            ctypes.memmove(in_process(m, at), place, nbytes)
            yield go.PrimTouch(p, line, name, (at, nbytes), WRITES, bool(threads))
        else:
            *wait, _ = args
            yield go.PrimAwait(p, line, *wait)


def together(m: int, p: int, line: int, steps: list[tuple[Any, ...]]) -> Program:
    """Takes steps by the one door that they have together."""
    numbers: list[int] = []
    for kind, *args in steps:
        given = [go.PrimLine(m, a) if isinstance(a, str) else int(a) for a in args]
        numbers += (kind, line, *given, *(0 for _ in range(5 - len(given))))
    yield go.PrimRun(p, numbers)


def played(join: bool, check: bool, seed: int | None) -> tuple[int, bytes, str]:
    """Lets two ranks send to each other and wait, over some rounds: the time, what is there, and what was found."""
    with machine(2, check, seed is not None, seed or 0) as m:
        w = window(m, 2, 512)
        line = go.PrimLine(m, "here.py:7")
        place = DATA.ctypes.data

        def body(p: int) -> Program:
            rank = go.PrimAbout(p)[0]
            own, peer = w[rank], w[1 - rank]
            copied = np.empty_like(DATA)
            for turn in range(1, 4):
                steps = [
                    (PASS, 1000 * (rank + 1) * turn),
                    (TOUCH, "store", own + 256, 64, WRITES, True),
                    (MEET,),
                    (SCATTER, "send", peer + 128 * (turn % 2), DATA.nbytes, place, True),
                    *([] if rank else [(MEET,), (FENCE,)]),
                    (SIGNAL, peer + 504, 8, SET, turn, ATOMIC),
                    (AWAIT, own + 504, 8, EQ, turn, ATOMIC),
                    (LOAD, "load", own + 128 * (turn % 2), copied.nbytes, copied.ctypes.data, True),
                    (PASS, 500),
                    (STORE, "store", own + 320, copied.nbytes, copied.ctypes.data, True),
                ]
                yield from together(m, p, line, steps) if join else one_by_one(m, p, line, steps)

        go.PrimSubmit(m, "exchange", (0, 1), 1, False, ())
        run(m, body)
        here = b"".join(read(m, at, np.zeros(512, np.uint8)).tobytes() for at in w)
        return go.PrimNow(m), here, go.PrimFindings(m)


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_steps_are_what_their_doors_do(check: bool, seed: int | None) -> None:
    apart = played(False, check, seed)
    assert played(True, check, seed) == apart
    assert apart[1][320:448] == apart[1][512 + 320 : 512 + 448] == DATA.tobytes()


def test_what_is_wrong_with_a_later_step_is_said_at_the_next_door() -> None:
    with machine(1) as m:
        w = window(m, 1, 64)
        line = go.PrimLine(m, "here.py:9")

        def body(p: int) -> Program:
            yield go.PrimRun(p, (PASS, line, 1000, 0, 0, 0, 0, SIGNAL, line, w[0] + (1 << 30), 8, SET, 1, ATOMIC))
            with pytest.raises(ValueError, match=r"here\.py:9: .* is in no window"):
                go.PrimOrder(p, line, "fence")

        go.PrimSubmit(m, "wrong", (0,), 1, False, ())
        run(m, body)


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ((PASS, 0, 0), "3 integers are no steps: each has 7"),
        ((9, 0, 0, 0, 0, 0, 0), "step 9; there are 0 to 8"),
        ((PASS, 0, -1, 0, 0, 0, 0), "time cannot pass backwards: -1 ps"),
        ((TOUCH, 0, 0, 0, 0, 9, 0), "use 9 of memory; there are 0 to 5"),
        ((AWAIT, 0, 0, 8, 6, 0, ATOMIC), "comparison 6; there are 0 to 5"),
        ((AWAIT, 0, 0, 8, EQ, 0, READS), "use 0 of a word; there are 2 to 5"),
    ],
)
def test_what_is_no_step(steps: tuple[int, ...], text: str) -> None:
    with machine(1) as m:

        def body(p: int) -> Program:
            with pytest.raises(ValueError, match=text):
                go.PrimRun(p, steps)
            yield False

        go.PrimSubmit(m, "wrong", (0,), 1, False, ())
        run(m, body)
