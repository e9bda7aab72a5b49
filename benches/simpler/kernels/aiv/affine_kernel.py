"""y = x·scale + bias, element by element."""

from torchemu.pto import PIPE_ALL, TADD, TASSIGN, TLOAD, TMUL, TSTORE, GlobalTensor, Tile, pipe_barrier


def kernel_entry(args):
    x, scale, bias, y = (GlobalTensor(tensor.ptr(), tensor.shapes) for tensor in args)
    tiles = [Tile(1, args[0].numel()) for _ in range(3)]
    for i, (tile, source) in enumerate(zip(tiles, (x, scale, bias), strict=True)):
        TASSIGN(tile, i * 0x4000)
        TLOAD(tile, source)
    pipe_barrier(PIPE_ALL)
    TMUL(tiles[0], tiles[0], tiles[1])
    TADD(tiles[0], tiles[0], tiles[2])
    pipe_barrier(PIPE_ALL)
    TSTORE(y, tiles[0])
