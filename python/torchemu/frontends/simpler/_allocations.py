"""The domains of a Worker that are allocated."""

from __future__ import annotations

from collections.abc import Sequence

from torchemu.frontends.simpler import _domains
from torchemu.frontends.simpler._domains import ChipDomainContext, CommBufferSpec, CommDomainHandle, DomainBuffer
from torchemu.frontends.simpler._memory import ChipMemory, DomainMemory


class Allocations:
    """They are numbered from 1 on, and freed between the end of a run's tasks and the next run.

    Args:
        chips: the memory that they are in.
        count: how many workers there are.

    Attributes:
        live: those that have not been released, by name.
    """

    def __init__(self, chips: ChipMemory, count: int) -> None:
        self._chips, self._workers = chips, count
        self.live: dict[str, CommDomainHandle] = {}
        self._memory: dict[CommDomainHandle, DomainMemory] = {}
        self._allocated = 0

    def allocate(
        self, name: str, workers: Sequence[int], window_size: int, buffers: Sequence[CommBufferSpec]
    ) -> CommDomainHandle:
        """Acts as Orchestrator.allocate_domain."""
        _domains.check(name, workers, self._workers, window_size, buffers)
        if name in self.live:
            raise ValueError(f"allocate_domain({name!r}): a domain of this name is already live; release it first")
        memory = self._chips.allocate_domain(name, workers, window_size)
        contexts = {
            worker: self._context(
                name, place, memory, window_size, _domains.parts(buffers, memory.bases[place], worker)
            )
            for place, worker in enumerate(workers)
        }
        self._allocated += 1
        handle = CommDomainHandle(name, contexts, self._allocated, self._release)
        self.live[name] = handle
        self._memory[handle] = memory
        return handle

    @staticmethod
    def _context(
        name: str, place: int, memory: DomainMemory, window_size: int, buffers: dict[str, DomainBuffer]
    ) -> ChipDomainContext:
        return ChipDomainContext(
            name=name,
            domain_rank=place,
            domain_size=len(memory.bases),
            device_ctx=memory.contexts[place],
            local_window_base=memory.bases[place],
            actual_window_size=window_size,
            buffer_ptrs={name: buffer.addr for name, buffer in buffers.items()},
            buffers=buffers,
        )

    def _release(self, handle: CommDomainHandle) -> None:
        """Its name may be used again; its memory stays until sweep."""
        if self.live.get(handle.name) is handle:
            del self.live[handle.name]

    def sweep(self) -> None:
        """Frees all that are left: those that were released, and those that the program forgot."""
        for handle, memory in self._memory.items():
            self._chips.free_domain(memory)
            handle.gone()
        self._memory.clear()
        self.live.clear()
