"""All-reduce: each chip stages its input in its window, all meet, and each adds up all windows: its own input first,
then the others ascending. So the last bits of chips may differ."""

from torchemu.pto import (
    EVENT_ID0,
    PIPE_ALL,
    PIPE_MTE2,
    PIPE_MTE3,
    PIPE_V,
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
    set_flag,
    wait_flag,
)

COUNT = 256


def kernel_entry(args):
    source, result, scratch = (tensor.ptr() for tensor in args[:3])
    nranks = args[3]
    ctx = CommContext(args[4])
    signals = (scratch + COUNT).cast(int32)

    acc, peers = Tile(1, COUNT), Tile(1, COUNT)
    TASSIGN(acc, 0x0)
    TASSIGN(peers, 0x10000)

    TLOAD(acc, GlobalTensor(source, (COUNT,)))
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0)
    TSTORE(GlobalTensor(scratch, (COUNT,)), acc)
    pipe_barrier(PIPE_ALL)

    barrier(ctx, signals, nranks)

    for peer in range(nranks):
        if peer == ctx.rankId:
            continue
        TLOAD(peers, GlobalTensor(CommRemotePtr(ctx, scratch, peer), (COUNT,)))
        set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
        wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0)
        TADD(acc, acc, peers)
        set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
        wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0)
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0)
    TSTORE(GlobalTensor(result, (COUNT,)), acc)


def barrier(ctx, signals, nranks):
    """Waits for all others. For one use: the words have to be 0 before."""
    for peer in range(nranks):
        if peer != ctx.rankId:
            TNOTIFY(Signal(CommRemotePtr(ctx, signals + ctx.rankId, peer)), 1, NotifyOp.AtomicAdd)
    for peer in range(nranks):
        if peer != ctx.rankId:
            TWAIT(Signal(signals + peer), 1, WaitCmp.GE)
    pipe_barrier(PIPE_ALL)
