from torchemu.pto import TWAIT, Signal, WaitCmp, int32


def kernel_entry(args):
    flag = args[0].ptr().cast(int32)
    TWAIT(Signal(flag), 1, WaitCmp.GE)
