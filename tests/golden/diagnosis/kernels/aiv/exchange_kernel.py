from torchemu.pto import TNOTIFY, TWAIT, CommContext, CommRemotePtr, NotifyOp, Signal, WaitCmp, int32


def kernel_entry(args):
    ctx = CommContext(args[1])
    flag = args[0].ptr().cast(int32)
    TNOTIFY(Signal(CommRemotePtr(ctx, flag, 1 - ctx.rankId)), 1, NotifyOp.AtomicAdd)
    TWAIT(Signal(flag), 1, WaitCmp.GE)
