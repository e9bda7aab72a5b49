"""All-gather: each chip stages its block in its window, all meet, and each copies all windows in the order of ranks."""

from torchemu.pto import (
    PIPE_ALL,
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
    signals = (scratch + COUNT).cast(int32)

    tile = Tile(1, COUNT)
    TASSIGN(tile, 0x0)
    copy(GlobalTensor(scratch, (COUNT,)), GlobalTensor(source, (COUNT,)), tile)

    for peer in range(nranks):
        if peer != me:
            TNOTIFY(Signal(CommRemotePtr(ctx, signals + me, peer)), 1, NotifyOp.AtomicAdd)
    for peer in range(nranks):
        if peer != me:
            TWAIT(Signal(signals + peer), 1, WaitCmp.GE)
    pipe_barrier(PIPE_ALL)

    for rank in range(nranks):
        block = GlobalTensor(CommRemotePtr(ctx, scratch, rank), (COUNT,))
        copy(GlobalTensor(result + rank * COUNT, (COUNT,)), block, tile)


def copy(to, source, tile):
    """Brings elements from one place to another, and waits until they are there."""
    TLOAD(tile, source)
    pipe_barrier(PIPE_ALL)
    TSTORE(to, tile)
    pipe_barrier(PIPE_ALL)
