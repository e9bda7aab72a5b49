"""c = a + b, for up to 16 KiB at a time."""

from torchemu.pto import PIPE_ALL, TADD, TASSIGN, TLOAD, TSTORE, GlobalTensor, Tile, pipe_barrier

MOST = 4096  # elements of a tile


def kernel_entry(args):
    a, b, c = (tensor.ptr() for tensor in args)
    elements = args[0].numel()
    for first in range(0, elements, MOST):
        count = min(MOST, elements - first)
        left, right = Tile(1, count), Tile(1, count)
        TASSIGN(left, 0x0)
        TASSIGN(right, 0x8000)
        TLOAD(left, GlobalTensor(a + first, (count,)))
        TLOAD(right, GlobalTensor(b + first, (count,)))
        pipe_barrier(PIPE_ALL)
        TADD(left, left, right)
        pipe_barrier(PIPE_ALL)
        TSTORE(GlobalTensor(c + first, (count,)), left)
        pipe_barrier(PIPE_ALL)
