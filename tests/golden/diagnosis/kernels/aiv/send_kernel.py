from torchemu.pto import TNOTIFY, CommContext, CommRemotePtr, NotifyOp, Signal, int32


def kernel_entry(args):
    ctx = CommContext(args[1])
    flag = args[0].ptr().cast(int32)
    TNOTIFY(Signal(CommRemotePtr(ctx, flag, 1 - ctx.rankId)), 1, NotifyOp.AtomicAdd)
