"""A chip's core for compiled kernels: scratch memory in the process, and places of memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from torchemu.bridge.binding import go


@dataclass(frozen=True)
class Region:
    """Memory that has been allocated.

    Attributes:
        address: the machine's, of its beginning.
        place: where that is in the process.
    """

    address: int
    place: int
    nbytes: int


class Core:
    """One chip's.

    Args:
        machine: the handle of the machine.
        rank: the chip's.
        is_context: says whether a domain's CommContext is at an address of the machine.

    Attributes:
        due: makes the results of instructions, by their numbers.
    """

    def __init__(self, machine: int, rank: int, is_context: Callable[[int], bool]) -> None:
        self.machine, self.rank, self.is_context = machine, rank, is_context
        self.due: dict[int, Callable[[], None]] = {}
        self._scratch: np.ndarray | None = None
        self._made: list[int] = []

    def scratch(self, program: int) -> np.ndarray:
        """All bytes of the scratch memory, which a program makes the core's."""
        if self._scratch is None:
            self._scratch = np.zeros(go.PrimScratchBytes(self.machine), np.uint8)
        go.PrimScratch(program, self._scratch.__array_interface__["data"][0], self._scratch.nbytes)
        return self._scratch

    def in_process(self, address: int) -> Region:
        """The memory in which an address of the machine is.

        Raises:
            RuntimeError: there is none.
        """
        return Region(*go.PrimInProcess(self.machine, address))

    def holding(self, place: int) -> Region | None:
        """The memory in which a place in the process is; None where it is in none."""
        found = go.PrimHolding(self.machine, place, self.rank)
        return Region(*found) if found else None

    def allocate(self, nbytes: int) -> int:
        """The machine's address of so many zeroed bytes, until free."""
        window = go.PrimAllocate(self.machine, "made by an orchestration", (self.rank,), nbytes)
        self._made.append(window)
        return int(go.PrimAddress(window, self.rank, 0))

    def free(self) -> None:
        """Frees what allocate has given."""
        for window in self._made:
            go.PrimFree(window)
        self._made.clear()
