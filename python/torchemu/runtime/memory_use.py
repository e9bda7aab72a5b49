"""The use of each rank's device memory, for torch.cuda's functions about memory."""

from __future__ import annotations

import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.errors import OutOfMemoryError
from torchemu.runtime.rank_local import RankLocal

_BLOCK = 512  # bytes, in which PyTorch gives memory out
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


class _Piece(weakref.ref):
    """A storage's share. It notes the storage's end itself: nothing but C code runs then, on whichever rank."""

    __slots__ = ("nbytes",)

    nbytes: int

    __eq__ = object.__eq__
    __hash__ = object.__hash__


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
    """

    def __init__(self) -> None:
        context = runtime.current()
        self._world, self._rank, spec = context.world, context.rank, context.world.spec
        mesh = spec["sip"]["cube_mesh"]
        self.capacity = int(mesh["w"] * mesh["h"] * spec["cube"]["hbm"]["capacity_gib"] * 2**30)
        self.fraction = 1.0
        self.allocated = self.peak = self.taken = 0
        self.held_back: Callable[[], Iterable[_Piece]] | None = None
        self._gone: deque[_Piece] = deque()
        self._pieces: set[_Piece] = set()

    @property
    def count(self) -> int:
        """Storages now."""
        return len(self._pieces)

    def held(self) -> list[tuple[int, int, int]]:
        """Lists the storages now: address, bytes, and the bytes that they take of the device."""
        storages = [(piece(), piece.nbytes) for piece in self._pieces]
        return [(s.data_ptr(), s.nbytes(), kept) for s, kept in storages if s is not None]

    def take(self, storage: Any, nbytes: int) -> _Piece:
        """Counts a storage until it is gone. Returns what resize takes.

        Raises:
            OutOfMemoryError: the device has not so much memory left.
        """
        self.check(nbytes)
        piece = _Piece(storage, self._gone.append)
        piece.nbytes = nbytes = in_blocks(nbytes)
        self._pieces.add(piece)
        self.allocated += nbytes
        self.taken += nbytes
        if self.allocated > self.peak:
            self._note_peak()
        if self._world.recordings:
            self._record()
        return piece

    def resize(self, piece: _Piece, nbytes: int) -> None:
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

    def _end(self, piece: _Piece) -> None:
        self._pieces.discard(piece)
        self.allocated -= piece.nbytes

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
