"""The chips' memory: what is allocated there, and the host's tensors that kernels see in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from torchemu.bridge.binding import go
from torchemu.frontends.pto._memory import CONTEXT_BYTES, packed_context
from torchemu.frontends.simpler import _host_memory
from torchemu.frontends.simpler._arguments import ContinuousTensor


@dataclass(frozen=True)
class Seat:
    """A place in a domain.

    Attributes:
        ranks: the members' ranks, in the domain's order.
        place: which of them it is.
        base, nbytes: where its window is, and how long.
    """

    ranks: tuple[int, ...]
    place: int
    base: int
    nbytes: int


@dataclass(frozen=True)
class DomainMemory:
    """The memory of a domain on its chips.

    Attributes:
        windows: the numbers of its windows.
        bases: where each member's window is.
        contexts: where each member's CommContext is.
    """

    windows: tuple[int, ...]
    bases: tuple[int, ...]
    contexts: tuple[int, ...]


@dataclass(frozen=True)
class _Window:
    """A zeroed window, or a chip's piece of memory.

    Attributes:
        bases: where it is, by rank.
    """

    bases: dict[int, int]
    nbytes: int

    def has(self, rank: int, address: int, nbytes: int) -> bool:
        """Reports whether bytes are in a rank's part of it."""
        base = self.bases.get(rank)
        return base is not None and base <= address and address + nbytes <= base + self.nbytes


class ChipMemory:
    """The memory of the chips of a machine.

    Args:
        machine: its handle.
        ranks: the chips' ranks in it.
    """

    def __init__(self, machine: int, ranks: Sequence[int]) -> None:
        self._machine, self._ranks = machine, ranks
        self._windows: dict[int, _Window] = {}
        self._pieces: dict[tuple[int, int], int] = {}  # what malloc gave: windows, by worker and address
        self._seats: dict[int, Seat] = {}  # by the address of the CommContext
        self._attached: dict[tuple[int, int, int], int] = {}  # windows, by rank, the host's address, and size

    # -- windows

    def _allocate(self, name: str, workers: Sequence[int], nbytes: int) -> int:
        """A zeroed window."""
        ranks = [self._ranks[worker] for worker in workers]
        number: int = go.PrimAllocate(self._machine, name, ranks, nbytes)
        self._windows[number] = _Window({rank: go.PrimAddress(number, rank, 0) for rank in ranks}, nbytes)
        return number

    def _free(self, window: int) -> None:
        go.PrimFree(window)
        del self._windows[window]

    def malloc(self, worker: int, size: int) -> int:
        """Acts as Orchestrator.malloc."""
        window = self._allocate("malloc", [worker], size)
        address = self._windows[window].bases[self._ranks[worker]]
        self._pieces[worker, address] = window
        return address

    def free(self, worker: int, address: int) -> None:
        """Acts as Orchestrator.free."""
        window = self._pieces.pop((worker, address), None)
        if window is None:
            raise ValueError(f"free: worker {worker} has nothing of malloc's at {address:#x}, or has freed it")
        self._free(window)

    def write(self, worker: int, address: int, data: np.ndarray) -> None:
        """Copies bytes to a chip's memory.

        Raises:
            ValueError: the address is not in its memory.
        """
        self.check(worker, address, data.nbytes)
        go.PrimWrite(self._machine, address, data.__array_interface__["data"][0], data.nbytes)

    def read(self, worker: int, address: int, data: np.ndarray) -> None:
        """Copies bytes from a chip's memory, as write."""
        self.check(worker, address, data.nbytes)
        go.PrimRead(self._machine, address, data.__array_interface__["data"][0], data.nbytes)

    def check(self, worker: int, address: int, nbytes: int) -> None:
        """Checks that bytes are in what has been allocated on a chip.

        Raises:
            ValueError: they are not.
        """
        if not any(w.has(self._ranks[worker], address, nbytes) for w in self._windows.values()):
            where = f"one window, or malloc's memory, of worker {worker}"
            raise ValueError(f"{nbytes} bytes at {address:#x} are not in {where}")

    # -- domains

    def allocate_domain(self, name: str, workers: Sequence[int], nbytes: int) -> DomainMemory:
        """The windows of a domain, with a CommContext for each member."""
        numbers = (
            self._allocate(name, workers, nbytes),
            self._allocate(f"CommContext of {name}", workers, CONTEXT_BYTES),
        )
        bases, contexts = (tuple(self._windows[number].bases.values()) for number in numbers)
        ranks = tuple(self._ranks[worker] for worker in workers)
        for place, context in enumerate(contexts):
            self.write(workers[place], context, packed_context(place, bases, nbytes))
            self._seats[context] = Seat(ranks, place, bases[place], nbytes)
        return DomainMemory(numbers, bases, contexts)

    def free_domain(self, memory: DomainMemory) -> None:
        """Frees a domain's memory."""
        for window in memory.windows:
            self._free(window)
        for context in memory.contexts:
            del self._seats[context]

    def seat(self, context: int) -> Seat:
        """The seat whose CommContext is at an address.

        Raises:
            ValueError: there is none.
        """
        if context not in self._seats:
            raise ValueError(f"device_ctx {context:#x} is that of no domain that is allocated")
        return self._seats[context]

    def is_context(self, address: int) -> bool:
        """Reports whether the CommContext of a domain is at an address."""
        return address in self._seats

    # -- tensors

    def address(self, rank: int, tensor: ContinuousTensor) -> int:
        """Returns where a task's tensor is for the kernels of a chip. Of the host's tensors both see the same bytes."""
        if tensor.child_memory:
            return tensor.data
        key = (rank, tensor.data, tensor.nbytes())
        if not tensor.nbytes():
            return 0
        if key not in self._attached:
            _host_memory.storage_at(tensor.data, tensor.nbytes(), "a task's tensor")  # waits for what is under way
            window = go.PrimAttach(self._machine, f"host tensor {tensor.shapes}", rank, *key[1:])
            go.PrimShare(window, tensor.data)
            self._attached[key] = window
        return int(go.PrimAddress(self._attached[key], rank, 0))

    def detach(self) -> None:
        """Ends what address made of the host's tensors."""
        for window in self._attached.values():
            go.PrimFree(window)
        self._attached.clear()
