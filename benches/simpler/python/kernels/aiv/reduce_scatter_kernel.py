"""Reduce-scatter: each chip stages all blocks in its window, all meet, and each adds up its block of all windows, its
own first and then the others ascending."""

from torchemu.pto import (
    PIPE_ALL,
    TADD,
    TASSIGN,
    TLOAD,
    TNOTIFY,
    TSTORE,
    TWAIT,
    CommContext,
    CommRemotePtr,
    GlobalTensor,
    NotifyOp,
    Signal,
    Tile,
    WaitCmp,
    int32,
    pipe_barrier,
)

COUNT = 64


def kernel_entry(args):
    source, result, scratch = (tensor.ptr() for tensor in args[:3])
    nranks = args[3]
    ctx = CommContext(args[4])
    me = ctx.rankId
    signals = (scratch + nranks * COUNT).cast(int32)

    acc, other = Tile(1, COUNT), Tile(1, COUNT)
    TASSIGN(acc, 0x0)
    TASSIGN(other, 0x10000)

    for block in range(nranks):
        TLOAD(acc, GlobalTensor(source + block * COUNT, (COUNT,)))
        pipe_barrier(PIPE_ALL)
        TSTORE(GlobalTensor(scratch + block * COUNT, (COUNT,)), acc)
        pipe_barrier(PIPE_ALL)

    for peer in range(nranks):
        if peer != me:
            TNOTIFY(Signal(CommRemotePtr(ctx, signals + me, peer)), 1, NotifyOp.AtomicAdd)
    for peer in range(nranks):
        if peer != me:
            TWAIT(Signal(signals + peer), 1, WaitCmp.GE)
    pipe_barrier(PIPE_ALL)

    own = scratch + me * COUNT
    TLOAD(acc, GlobalTensor(own, (COUNT,)))
    for peer in range(nranks):
        if peer != me:
            TLOAD(other, GlobalTensor(CommRemotePtr(ctx, own, peer), (COUNT,)))
            pipe_barrier(PIPE_ALL)
            TADD(acc, acc, other)
            pipe_barrier(PIPE_ALL)
    pipe_barrier(PIPE_ALL)
    TSTORE(GlobalTensor(result, (COUNT,)), acc)
