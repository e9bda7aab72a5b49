"""All-reduce by two rings at once: the first halves of the chunks go to the right, the second ones to the left. A chip
puts its sum so far into its neighbour's window (TPUT), which adds its own input and passes it on."""

from torchemu.pto import (
    PIPE_ALL,
    TADD,
    TASSIGN,
    TLOAD,
    TNOTIFY,
    TPUT,
    TSTORE,
    TWAIT,
    CommContext,
    CommRemotePtr,
    GlobalTensor,
    NotifyOp,
    Signal,
    Tile,
    WaitCmp,
    dsb,
    int32,
    pipe_barrier,
)

COUNT = 256
ROW = 16  # words of a signal row
RIGHT, LEFT = 1, -1


class Ring:
    """One chip's side of its two rings."""

    def __init__(self, args):
        self.source, self.result, self.scratch = (tensor.ptr() for tensor in args[:3])
        self.n, self.ctx = args[3], CommContext(args[4])
        self.me = self.ctx.rankId
        self.half = COUNT // (2 * self.n)
        self.signals = (self.scratch + COUNT).cast(int32)
        self.sum, self.part = Tile(1, self.half), Tile(1, self.half)
        TASSIGN(self.sum, 0x0)
        TASSIGN(self.part, 0x10000)

    def at(self, way, steps):
        """The first element of the half chunk that began at this place in the ring and has gone so many steps."""
        return (self.me - way * steps) % self.n * 2 * self.half + (self.half if way == LEFT else 0)

    def span(self, pointer, first):
        """So many elements as a half chunk has."""
        return GlobalTensor(pointer + first, (self.half,))

    def put(self, way, first):
        """Brings a half chunk from the own result to the same place in the neighbour's window."""
        peer = (self.me + way) % self.n
        TPUT(self.span(CommRemotePtr(self.ctx, self.scratch, peer), first), self.span(self.result, first), self.part)

    def add(self, first, received):
        """Makes the own result of a half chunk: the input, with what has come added."""
        TLOAD(self.sum, self.span(self.source, first))
        if received:
            TLOAD(self.part, self.span(self.scratch, first))
            pipe_barrier(PIPE_ALL)
            TADD(self.sum, self.part, self.sum)
        pipe_barrier(PIPE_ALL)
        TSTORE(self.span(self.result, first), self.sum)
        pipe_barrier(PIPE_ALL)

    def copy(self, first):
        """Brings what has come to the own result."""
        TLOAD(self.part, self.span(self.scratch, first))
        pipe_barrier(PIPE_ALL)
        TSTORE(self.span(self.result, first), self.part)
        pipe_barrier(PIPE_ALL)

    def meet(self, row, peers):
        """Tells some chips that what they were sent is there, and waits until they say so."""
        dsb()
        for peer in sorted(peers):
            TNOTIFY(Signal(CommRemotePtr(self.ctx, self.signals + row * ROW + self.me, peer)), 1, NotifyOp.AtomicAdd)
        for peer in sorted(peers):
            TWAIT(Signal(self.signals + row * ROW + peer), 1, WaitCmp.GE)


def kernel_entry(args):
    ring = Ring(args)
    neighbours = {(ring.me + 1) % ring.n, (ring.me - 1) % ring.n}
    ring.meet(0, set(range(ring.n)) - {ring.me})
    for step in range(1, ring.n):
        for way in (RIGHT, LEFT):
            ring.add(ring.at(way, step), received=step > 1)
            ring.put(way, ring.at(way, step))
        ring.meet(step, neighbours)
    for way in (RIGHT, LEFT):
        ring.add(ring.at(way, 0), received=True)
    for step in range(1, ring.n):
        for way in (RIGHT, LEFT):
            ring.put(way, ring.at(way, step - 1))
        ring.meet(ring.n - 1 + step, neighbours)
        for way in (RIGHT, LEFT):
            ring.copy(ring.at(way, step))
