"""partial = x·w of the shards of one chip."""

from torchemu.pto import PIPE_ALL, TASSIGN, TLOAD, TMATMUL, TSTORE, GlobalTensor, Tile, pipe_barrier


def kernel_entry(args):
    x, w, partial = args
    (m, k), (_, n) = x.shapes, w.shapes
    left, right, product = Tile(m, k), Tile(k, n), Tile(m, n)
    for tile, offset in ((left, 0x0), (right, 0x8000), (product, 0x10000)):
        TASSIGN(tile, offset)
    TLOAD(left, GlobalTensor(x.ptr(), x.shapes))
    TLOAD(right, GlobalTensor(w.ptr(), w.shapes))
    pipe_barrier(PIPE_ALL)
    TMATMUL(product, left, right)
    pipe_barrier(PIPE_ALL)
    TSTORE(GlobalTensor(partial.ptr(), partial.shapes), product)
