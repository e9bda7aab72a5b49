"""Kernels in Python on simpler's chips, right and with planted defects; see test_simpler_planted.py.

Chip r has 64 floats in, from 100 r on, 256 out, and a window of 1,024 with signals behind. Marks are as in Python.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

BEGIN = """from torchemu.pto import *
N = 64
def add(a, b, to, n):
    left, right = Tile(1, n), Tile(1, n)
    TASSIGN(left, 0x0)
    TASSIGN(right, 0x4000)
    TLOAD(left, GlobalTensor(a, (n,)))
    TLOAD(right, GlobalTensor(b, (n,)))
    pipe_barrier(PIPE_ALL)
    TADD(left, left, right)
    pipe_barrier(PIPE_ALL)
    TSTORE(GlobalTensor(to, (n,)), left)
    pipe_barrier(PIPE_ALL)
def kernel_entry(args):
    source, result, scratch = (tensor.ptr() for tensor in args[:3])
    world = args[3]
    ctx = CommContext(args[4])
    me = ctx.rankId
    right, left = (me + 1) % world, (me - 1) % world
    words = (scratch + 1024).cast(int32)
    def at(p, r): return CommRemotePtr(ctx, p, r)
    def tell(word, peer, value=1, op=NotifyOp.AtomicAdd): TNOTIFY(Signal(at(word, peer)), value, op)  #! set
    def wait(word, value, cmp=WaitCmp.GE): TWAIT(Signal(word), value, cmp)  #! no credit, one too few
"""

PROGRAMS: dict[str, str] = {
    "one-phase": """
    acc, peers = Tile(1, N), Tile(1, N)
    TASSIGN(acc, 0x0)
    TASSIGN(peers, 0x10000)
    TLOAD(acc, GlobalTensor(source, (N,)))  #! no flag
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)  #- no flag
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)  #- no flag
    TSTORE(GlobalTensor(scratch, (N,)), acc)  #! no flag, not drained, no wait
    pipe_barrier(PIPE_ALL)  #- not drained
    for p in range(world):
        if p != me: tell(words + me, p)
    for p in range(world):
        w = p
        if p != me: wait(words + w, 1)  #- no wait
    for p in range(world):
        if p == me: continue
        TLOAD(peers, GlobalTensor(at(scratch, p), (N,)))  #! not drained, no wait, overlap, add flag
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)  #- add flag
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)  #- add flag
        TADD(acc, acc, peers)  #! overlap, add flag, not drained
        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)  #- overlap
        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)  #- overlap
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    TSTORE(GlobalTensor(result, (N,)), acc)
""",
    "gather by puts": """
    tile = Tile(1, N)
    TASSIGN(tile, 0x0)
    for p in range(world):
        slot = me
        slot = 0  #+ one slot
        TPUT(GlobalTensor(at(scratch + slot * N, p), (N,)), GlobalTensor(source, (N,)), tile)  #! *
        pipe_barrier(PIPE_ALL)
        dsb()
        tell(words + me, p)
    for p in range(world): wait(words + p, 1)  #- no wait
    out = Tile(1, N * 4)
    TASSIGN(out, 0x8000)
    TLOAD(out, GlobalTensor(scratch, (N * 4,)))  #! *
    pipe_barrier(PIPE_ALL)
    TSTORE(GlobalTensor(result, (N * 4,)), out)
""",
    "ring with two buffers": """
    tile = Tile(1, N)
    TASSIGN(tile, 0x0)
    free = words + 8
    cur = source
    add_to = result + me * N
    t2 = Tile(1, N)
    TASSIGN(t2, 0x2000)
    TLOAD(t2, GlobalTensor(source, (N,)))
    pipe_barrier(PIPE_ALL)
    TSTORE(GlobalTensor(result + me * N, (N,)), t2)
    pipe_barrier(PIPE_ALL)
    for s in range(world - 1):
        b = s % 2
        b = 0  #+ one buffer
        if s >= 2: wait(free + b, s // 2)  #- no credit
        TPUT(GlobalTensor(at(scratch + b * N, right), (N,)), GlobalTensor(cur, (N,)), tile)  #! *
        pipe_barrier(PIPE_ALL)
        dsb()
        tell(words + b, right)
        value = s // 2 + 1
        value = s + 1  #+ one buffer
        wait(words + b, value)  #- no wait
        c = (me - s - 1) % world
        TLOAD(t2, GlobalTensor(scratch + b * N, (N,)))  #! *
        pipe_barrier(PIPE_ALL)
        TSTORE(GlobalTensor(result + c * N, (N,)), t2)  #! no drain
        pipe_barrier(PIPE_ALL)  #- no drain
        cur = result + c * N
        tell(free + b, left)
""",
    "all to all with gets": """
    tile = Tile(1, 16)
    TASSIGN(tile, 0x0)
    t2 = Tile(1, N)
    TASSIGN(t2, 0x2000)
    TLOAD(t2, GlobalTensor(source, (N,)))
    pipe_barrier(PIPE_ALL)
    TSTORE(GlobalTensor(scratch, (N,)), t2)  #! no barrier, no drain
    pipe_barrier(PIPE_ALL)  #- no drain
    for p in range(world):
        if p != me: tell(words + me, p, 1, NotifyOp.Set)
    for p in range(world):
        if p != me: wait(words + p, 1, WaitCmp.EQ)  #- no barrier
    for p in range(world):
        n = 16
        to, theirs = GlobalTensor(result + p * 16, (n,)), GlobalTensor(at(scratch + me * 16, p), (n,))
        TGET(to, theirs, tile)  #! no barrier, no drain
""",
    "atomic sum at an owner": """
    tile = Tile(1, 16)
    TASSIGN(tile, 0x0)
    for p in range(world):
        to, part = GlobalTensor(at(scratch, p), (16,)), GlobalTensor(source + p * 16, (16,))
        TPUT(to, part, tile, AtomicType.AtomicAdd)  #- plain put  #! no wait, one too few
        TPUT(to, part, tile)  #+ plain put  #! plain put
        pipe_barrier(PIPE_ALL)
        dsb()
        tell(words, p)
    n = world
    n = world - 1  #+ one too few
    wait(words, n)  #- no wait
    out = Tile(1, 16)
    TASSIGN(out, 0x4000)
    TLOAD(out, GlobalTensor(scratch, (16,)))  #! *
    pipe_barrier(PIPE_ALL)
    TSTORE(GlobalTensor(result, (16,)), out)
""",
    "launched twice": """
    tile = Tile(1, N)
    TASSIGN(tile, 0x0)
    TPUT(GlobalTensor(at(scratch, right), (N,)), GlobalTensor(source, (N,)), tile)  #! not reset, no second barrier
    pipe_barrier(PIPE_ALL)
    dsb()
    tell(words, right)
    wait(words, 1)  #! not reset
    t2 = Tile(1, N)
    TASSIGN(t2, 0x2000)
    TLOAD(t2, GlobalTensor(scratch, (N,)))  #! not reset, no second barrier
    pipe_barrier(PIPE_ALL)
    TSTORE(GlobalTensor(result, (N,)), t2)
    pipe_barrier(PIPE_ALL)
    tell(words, me, -1)  #- not reset
    pipe_barrier(PIPE_ALL)
    dsb()
    for p in range(world):
        tell(words + 1, p)
    wait(words + 1, world)  #- no second barrier
    tell(words + 1, me, -world)  #- no second barrier
    pipe_barrier(PIPE_ALL)
    dsb()
    for p in range(world): tell(words + 2, p)  #- no second barrier
    wait(words + 2, world)  #- no second barrier
""",
    "pipeline of two buffers": """
    a, b = Tile(1, 16), Tile(1, 16)
    TASSIGN(a, 0x0)
    TASSIGN(b, 0x1000)
    tiles, ready = (a, b), (EVENT_ID0, EVENT_ID1)
    for k in range(4):
        tile, e = tiles[k % 2], ready[k % 2]
        if k >= 2: wait_flag(PIPE_MTE3, PIPE_MTE2, e)  #- not free
        TLOAD(tile, GlobalTensor(source + 16 * k, (16,)))  #! *
        set_flag(PIPE_MTE2, PIPE_V, e)  #- not loaded, other event
        wait_flag(PIPE_MTE2, PIPE_V, e)  #- not loaded, other event
        set_flag(PIPE_MTE2, PIPE_MTE3, e)  #+ other event
        wait_flag(PIPE_MTE2, PIPE_MTE3, e)  #+ other event
        TADD(tile, tile, tile)  #! *
        set_flag(PIPE_V, PIPE_MTE3, e)  #- not added
        wait_flag(PIPE_V, PIPE_MTE3, e)  #- not added
        TSTORE(GlobalTensor(result + 16 * k, (16,)), tile)  #! *
        if k < 2: set_flag(PIPE_MTE3, PIPE_MTE2, e)  #- not free
    pipe_barrier(PIPE_ALL)
""",
    "chunks to a root, with credits": """
    tile = Tile(1, 16)
    TASSIGN(tile, 0x0)
    t2 = Tile(1, 16)
    TASSIGN(t2, 0x2000)
    free = words + 8
    for k in range(4):
        if me > 0:
            if k > 0: wait(free, k)  #- no credit
            slot = (me - 1) * 16
            slot = 0  #+ one slot
            to, part = GlobalTensor(at(scratch + slot, 0), (16,)), GlobalTensor(source + 16 * k, (16,))
            TPUT(to, part, tile)  #! *
            pipe_barrier(PIPE_ALL)
            dsb()
            tell(words, 0, k + 1, NotifyOp.Set)  #+ set
            tell(words, 0)  #- set
        else:
            n = (world - 1) * (k + 1)
            n = (world - 1) * (k + 1) - 1  #+ one too few
            n = k + 1  #+ set
            wait(words, n)  #! one too few, set
            for p in range(1, world):
                TLOAD(t2, GlobalTensor(scratch + (p - 1) * 16, (16,)))  #! *
                pipe_barrier(PIPE_ALL)
                TSTORE(GlobalTensor(result + (p - 1) * 64 + 16 * k, (16,)), t2)
                pipe_barrier(PIPE_ALL)
            for p in range(1, world): tell(free, p)
""",
    "halving and doubling": """
    t, u = Tile(1, N), Tile(1, N)
    TASSIGN(t, 0x0)
    TASSIGN(u, 0x1000)
    box = scratch + 256
    tile = Tile(1, N)
    TASSIGN(tile, 0x3000)
    TLOAD(t, GlobalTensor(source, (N,)))
    pipe_barrier(PIPE_ALL)
    TSTORE(GlobalTensor(scratch, (N,)), t)  #! *
    pipe_barrier(PIPE_ALL)
    lo, half, s, d, off = 0, N // 2, 0, world // 2, 0
    while d:
        peer = me ^ d
        give = lo if me & d else lo + half
        keep = lo + half if me & d else lo
        TPUT(GlobalTensor(at(box + off, peer), (half,)), GlobalTensor(scratch + give, (half,)), tile)  #! *
        pipe_barrier(PIPE_ALL)
        dsb()
        tell(words + s, peer)
        wait(words + s, 1)  #- no wait
        a, b = Tile(1, half), Tile(1, half)
        TASSIGN(a, 0x4000 + 0x2000 * s)
        TASSIGN(b, 0x5000 + 0x2000 * s)
        TLOAD(a, GlobalTensor(scratch + keep, (half,)))  #! *
        TLOAD(b, GlobalTensor(box + off, (half,)))  #! *
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)  #- no flag
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)  #- no flag
        TADD(a, a, b)  #! *
        set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)  #- no store flag
        wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)  #- no store flag
        TSTORE(GlobalTensor(scratch + keep, (half,)), a)  #! *
        pipe_barrier(PIPE_ALL)  #- no drain
        lo, off, half, d, s = keep, off + half, half // 2, d // 2, s + 1
    size, d = N // world, 1
    while d < world:
        peer = me ^ d
        TPUT(GlobalTensor(at(scratch + lo, peer), (size,)), GlobalTensor(scratch + lo, (size,)), tile)  #! *
        pipe_barrier(PIPE_ALL)
        dsb()
        tell(words + s, peer)
        wait(words + s, 1)  #- no second wait
        lo = lo // (2 * size) * 2 * size
        size, d, s = size * 2, d * 2, s + 1
    pipe_barrier(PIPE_ALL)
    TLOAD(u, GlobalTensor(scratch, (N,)))  #! *
    pipe_barrier(PIPE_ALL)
    TSTORE(GlobalTensor(result, (N,)), u)
""",
    "rows by counts in signals": """
    tile = Tile(1, 16)
    TASSIGN(tile, 0x0)
    at_row = 0
    for p in range(world):
        n = 4 * (1 + (me + p) % 3)
        slot = me
        slot = 0  #+ one slot
        TPUT(GlobalTensor(at(scratch + slot * 16, p), (n,)), GlobalTensor(source + at_row, (n,)), tile)  #! *
        pipe_barrier(PIPE_ALL)
        dsb()
        TNOTIFY(Signal(at(words + me, p)), n, NotifyOp.Set)
        at_row += 16
    out = 0
    for p in range(world):
        w = p
        w = me  #+ own word
        TWAIT(Signal(words + w), 0, WaitCmp.GT)  #- no wait
        n = 4 * (1 + (me + p) % 3)
        t = Tile(1, n)
        TASSIGN(t, 0x1000 + p * 0x400)
        TLOAD(t, GlobalTensor(scratch + p * 16, (n,)))  #! *
        set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)  #- no flag
        wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)  #- no flag
        TSTORE(GlobalTensor(result + out, (n,)), t)  #! *
        out += n
""",
    "two windows by parity, with answers": """
    tile, t2 = Tile(1, 16), Tile(1, 16)
    TASSIGN(tile, 0x0)
    TASSIGN(t2, 0x2000)
    full, ack = words, words + 8
    for k in range(4):
        b = k % 2
        if k >= 2: wait(ack + b, k // 2)  #- no ack
        TPUT(GlobalTensor(at(scratch + 16 * b, right), (16,)), GlobalTensor(source + 16 * k, (16,)), tile)  #! *
        pipe_barrier(PIPE_ALL)
        dsb()
        tell(full + b, right)
        need = k // 2 + 1
        need = 1  #+ not counted
        wait(full + b, need)  #- no wait
        TLOAD(t2, GlobalTensor(scratch + 16 * b, (16,)))  #! *
        pipe_barrier(PIPE_ALL)
        tell(ack + b, left)  #- acked by the wrong side
        tell(ack + b, right)  #+ acked by the wrong side
        TSTORE(GlobalTensor(result + 16 * k, (16,)), t2)
        pipe_barrier(PIPE_ALL)
""",
    "barrier by a counter of chip 0": """
    tile, t2 = Tile(1, N), Tile(1, N)
    TASSIGN(tile, 0x0)
    TASSIGN(t2, 0x2000)
    TLOAD(tile, GlobalTensor(source, (N,)))
    pipe_barrier(PIPE_ALL)
    TSTORE(GlobalTensor(scratch, (N,)), tile)  #! *
    pipe_barrier(PIPE_ALL)
    dsb()
    tell(words, 0)
    if me == 0:
        need = world
        need = world - 1  #+ one arrival too few
        wait(words, need)
        for p in range(world): tell(words + 1, p)
    wait(words + 1, 1)  #- not released
    for p in range(world):
        TLOAD(t2, GlobalTensor(at(scratch, p), (N,)))  #! *
        pipe_barrier(PIPE_ALL)
        TSTORE(GlobalTensor(result + p * N, (N,)), t2)
        pipe_barrier(PIPE_ALL)
""",
    "looks until it has come": """
    tile, t2 = Tile(1, N), Tile(1, N)
    TASSIGN(tile, 0x0)
    TASSIGN(t2, 0x2000)
    TPUT(GlobalTensor(at(scratch, right), (N,)), GlobalTensor(source, (N,)), tile)  #! *
    pipe_barrier(PIPE_ALL)
    dsb()
    tell(words, right)
    while not TTEST(Signal(words), 1, WaitCmp.GE): pass  #- not polled
    TTEST(Signal(words), 1, WaitCmp.GE)  #+ not polled
    TLOAD(t2, GlobalTensor(scratch, (N,)))  #! *
    pipe_barrier(PIPE_ALL)
    TSTORE(GlobalTensor(result, (N,)), t2)
""",
    "slots beside each other": """
    tile, t2 = Tile(1, 32), Tile(1, 128)
    TASSIGN(tile, 0x0)
    TASSIGN(t2, 0x2000)
    step = 32
    step = 24  #+ too narrow
    for p in range(world):
        TPUT(GlobalTensor(at(scratch + me * step, p), (32,)), GlobalTensor(source, (32,)), tile)  #! *
        pipe_barrier(PIPE_ALL)
        dsb()
        tell(words + me, p)
    for p in range(world): wait(words + p, 1)
    TLOAD(t2, GlobalTensor(scratch, (128,)))  #! *
    pipe_barrier(PIPE_ALL)
    TSTORE(GlobalTensor(result, (128,)), t2)
""",
    "values that grow": """
    tile, t2 = Tile(1, 16), Tile(1, 16)
    TASSIGN(tile, 0x0)
    TASSIGN(t2, 0x2000)
    for k in range(3):
        TPUT(GlobalTensor(at(scratch + 16 * k, right), (16,)), GlobalTensor(source + 16 * k, (16,)), tile)  #! *
        pipe_barrier(PIPE_ALL)
        dsb()
        tell(words, right, k + 1, NotifyOp.Set)
        cmp = WaitCmp.GE
        cmp = WaitCmp.NE  #+ any value
        v = k + 1
        v = k  #+ last value
        v = 0  #+ any value
        wait(words, v, cmp)
        TLOAD(t2, GlobalTensor(scratch + 16 * k, (16,)))  #! *
        pipe_barrier(PIPE_ALL)
        TSTORE(GlobalTensor(result + 16 * k, (16,)), t2)
        pipe_barrier(PIPE_ALL)
""",
}


def _gathered(rank: int) -> np.ndarray:
    return np.concatenate([np.arange(64) + 100 * r for r in range(4)])


def _of_left(rank: int) -> np.ndarray:
    return np.arange(64) + 100 * ((rank - 1) % 4)


def _rows(rank: int) -> np.ndarray:
    return np.concatenate([np.arange(4 * (1 + (r + rank) % 3)) + 16 * rank + 100 * r for r in range(4)])


WANTED: dict[str, Callable[[int], np.ndarray]] = {
    "one-phase": lambda rank: 4 * np.arange(64) + 600,
    "gather by puts": _gathered,
    "ring with two buffers": _gathered,
    "all to all with gets": lambda rank: np.concatenate([np.arange(16) + 16 * rank + 100 * r for r in range(4)]),
    "atomic sum at an owner": lambda rank: 4 * (np.arange(16) + 16 * rank) + 600,
    "pipeline of two buffers": lambda rank: 2 * np.arange(64) + 200 * rank,
    "chunks to a root, with credits": lambda rank: _gathered(0)[64:] if rank == 0 else np.zeros(0),
    "halving and doubling": lambda rank: 4 * np.arange(64) + 600,
    "rows by counts in signals": _rows,
    "launched twice": _of_left,
    "two windows by parity, with answers": _of_left,
    "barrier by a counter of chip 0": _gathered,
    "looks until it has come": _of_left,
    "slots beside each other": lambda rank: np.concatenate([np.arange(32) + 100 * r for r in range(4)]),
    "values that grow": lambda rank: _of_left(rank)[:48],
}
"""Returns what the right kernels give on a rank, at the beginning of its output."""
