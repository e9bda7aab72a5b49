"""The use of each rank's device memory, for torch.cuda's functions about memory."""

from __future__ import annotations

import contextlib
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.errors import OutOfMemoryError
from torchemu.runtime import capture
from torchemu.runtime.rank_local import RankLocal

_BLOCK = 512  # bytes, in which PyTorch gives memory out
_SMALL = 1 << 20  # bytes of a piece up to which it comes from PyTorch's small blocks
_APART = -1  # instead of a stream: the memory is a graph's
_SPARE = 256  # pieces that were given back and are remembered
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


class Piece(weakref.ref):
    """A storage's share. It notes the storage's end itself: nothing but C code runs then, on whichever rank.

    Attributes:
        nbytes: it takes of the device.
        stream: the number of the stream on which it was taken; -1 for a graph's.
        waited: numbers of streams whose work is over before others get the memory.
        before: the piece whose memory it has, if that is looked at and was another one's.
        block: the memory as the core knows it; None before it does.
        is_given: others may have its room, of which there are as many bytes as rest says.
    """

    __slots__ = ("before", "block", "is_given", "nbytes", "rest", "stream", "waited")

    nbytes: int
    rest: int
    is_given: bool
    stream: int
    waited: list[int]
    before: Piece | None
    block: Handle | None

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def know(self, tensor: int) -> None:
        """Tells the core, which knows the storage from now on as a tensor, whose memory that has been."""
        if self.block is not None:
            return
        self.block, before = Handle(go.Block(tensor)), self.before
        if before is not None and before.block is not None:
            go.Inherit(tensor, before.block.number, before.waited)
        self.before = None


class Use:
    """One rank's, of its device's memory.

    Attributes:
        capacity: bytes of the device.
        fraction: the share of it that the rank may take.
        allocated, peak: bytes of tensors now, and at most since reset_peak.
        count: storages now.
        taken: bytes in all so far.
        held_back: tells the pieces of storages that nobody has any more but what a host has put off: a device would
            have given their memory to others by now. None where nothing is put off.
        in_kernels: tells those of storages that nobody has any more but kernels that are under way; None where nobody
            looks at them.
    """

    def __init__(self) -> None:
        context = runtime.current()
        self._world, self._rank, spec = context.world, context.rank, context.world.spec
        mesh = spec["sip"]["cube_mesh"]
        self.capacity = int(mesh["w"] * mesh["h"] * spec["cube"]["hbm"]["capacity_gib"] * 2**30)
        self.fraction = 1.0
        self.allocated = self.peak = self.taken = 0
        self.held_back: Callable[[], Iterable[Piece]] | None = None
        self.in_kernels: Callable[[], Iterable[Piece]] | None = None
        self._gone: deque[Piece] = deque()
        self._pieces: set[Piece] = set()
        self._is_apart = False
        self._spare: list[Piece] = []  # those that were given back, where uses are looked at

    @property
    def count(self) -> int:
        """Storages now."""
        return len(self._pieces)

    def held(self) -> list[tuple[int, int, int]]:
        """Lists the storages now: address, bytes, and the bytes that they take of the device."""
        storages = [(piece(), piece.nbytes) for piece in self._pieces]
        return [(s.data_ptr(), s.nbytes(), kept) for s, kept in storages if s is not None]

    def take(self, storage: Any, nbytes: int) -> Piece:
        """Counts a storage until it is gone. Returns what resize takes.

        Raises:
            OutOfMemoryError: the device has not so much memory left.
        """
        self.check(nbytes)
        piece = Piece(storage, self._gone.append)
        piece.nbytes = nbytes = in_blocks(nbytes)
        piece.before, piece.block, piece.is_given = None, None, False
        if self._world.ordered:
            self._place(piece)
        self._pieces.add(piece)
        self.allocated += nbytes
        self.taken += nbytes
        if self.allocated > self.peak:
            self._note_peak()
        if self._world.recordings:
            self._record()
        return piece

    def _place(self, piece: Piece) -> None:
        """Gives a piece the smallest room of those that were given back of its stream, as PyTorch's allocator does."""
        if self._gone:
            self._give_back()
        for given in self.in_kernels() if self.in_kernels is not None else ():
            self._spread(given)
        context, n, piece.waited = runtime.current(), piece.nbytes, []
        if self._is_apart or capture.current() is not None:
            piece.stream = _APART
            return
        piece.stream = go.StreamNumber(context.stream) if context.streams else 0
        alike = [p for p in self._spare if p.stream == piece.stream and (p.nbytes <= _SMALL) == (n <= _SMALL)]
        fitting = [p for p in reversed(alike) if p.rest >= n]
        if fitting:
            piece.before = room = min(fitting, key=lambda p: p.rest)
            room.rest -= n
            if room.rest < (_BLOCK if n <= _SMALL else _SMALL):
                self._spare.remove(room)

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        """Within the with block pieces come from no memory that others have given back: from that of a graph."""
        before, self._is_apart = self._is_apart, True
        try:
            yield
        finally:
            self._is_apart = before

    def resize(self, piece: Piece, nbytes: int) -> None:
        """Counts a storage anew that has another size.

        Raises:
            OutOfMemoryError: the device has not so much memory left.
        """
        more = in_blocks(nbytes) - piece.nbytes
        if more > 0:
            self.check(more)
            self.taken += more
        piece.nbytes += more
        self.allocated += more
        if self.allocated > self.peak:
            self._note_peak()
        if self._world.recordings:
            self._record()

    def check(self, nbytes: int) -> None:
        """Raises OutOfMemoryError where the device has not so much memory left."""
        if self._gone:
            self._give_back()
        if self.allocated + nbytes > self.capacity * self.fraction:
            self._let_go()
        if self.allocated + nbytes > self.capacity * self.fraction:
            raise OutOfMemoryError(self._shortage(nbytes))

    def settle(self) -> None:
        """Gives back what storages had that are gone, or that only what is put off still has."""
        self._give_back()
        self._let_go()

    def _give_back(self) -> None:
        while self._gone:
            self._end(self._gone.popleft())
        if self._world.recordings:
            self._record()

    def _let_go(self) -> None:
        """Gives back what storages have that only what is put off still has. They are gone later."""
        for piece in self.held_back() if self.held_back is not None else ():
            self._end(piece)
            piece.nbytes = 0

    def _end(self, piece: Piece) -> None:
        self._pieces.discard(piece)
        self.allocated -= piece.nbytes
        if self._world.ordered:
            self._spread(piece)

    def _spread(self, piece: Piece) -> None:
        """Lets others have a piece's room, once."""
        if piece.stream != _APART and not piece.is_given:
            piece.is_given, piece.rest = True, piece.nbytes
            self._spare = [*self._spare[1 - _SPARE :], piece]

    def _note_peak(self) -> None:
        """Notes the use now as the highest, if it is."""
        self._let_go()
        self.peak = max(self.peak, self.allocated)

    def _record(self) -> None:
        go.UsesMemory(self._world.handle, self._rank, self.allocated)

    def reset_peak(self) -> None:
        """Begins to look for the highest use anew."""
        self.settle()
        self.peak = self.allocated

    def _shortage(self, nbytes: int) -> str:
        allowed = int(self.capacity * self.fraction)
        share = f" {readable(allowed)} allowed." if self.fraction < 1 else ""
        free = max(allowed - self.allocated, 0)
        return (
            f"CUDA out of memory. Tried to allocate {readable(nbytes)}. GPU {runtime.current().device} has a total "
            f"capacity of {readable(self.capacity)} of which {readable(free)} is free.{share} {self._takers()} The "
            "capacity is the topology's: capacity_gib for each of a SIP's cubes."
        )

    def _takers(self) -> str:
        """Names the tensors that take the memory, in a sentence."""
        if not self._pieces:
            return "No tensor takes any."
        sizes = Counter(piece.nbytes for piece in self._pieces)
        most, count = max(sizes.items(), key=lambda item: (item[0] * item[1], item[0]))
        if count == self.count:
            return f"{readable(self.allocated)} is allocated by tensors: {count} of {readable(most)}."
        text = f"{readable(self.allocated)} is allocated by {self.count} tensors"
        return f"{text}, of which {count} of {readable(most)} take the most."


_USE: RankLocal[Use] = RankLocal(Use)


def current() -> Use:
    """Returns the running rank's."""
    return _USE.get()


def in_blocks(nbytes: int) -> int:
    """Returns how much memory is given out for so many bytes."""
    return -(-nbytes // _BLOCK) * _BLOCK


def readable(nbytes: int) -> str:
    """1536 → 1.50 KiB."""
    power = min(max(nbytes.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    return f"{nbytes} bytes" if power == 0 else f"{nbytes / 1024**power:.2f} {_UNITS[power]}"
