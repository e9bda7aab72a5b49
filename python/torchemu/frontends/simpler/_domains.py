"""Communication domains: an ordered set of workers with a window in the memory of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from torchemu.frontends.simpler._arguments import ContinuousTensor, DataType

MOST_MEMBERS = 64
"""The number of members that a kernel's context has room for."""


@dataclass
class CommBufferSpec:
    """A named part of a domain's window. Buffers lie one after another, without gaps; only nbytes matters for that.

    Attributes:
        name: by which ChipDomainContext.buffer_ptrs knows it.
        dtype, count: what is in it, for readers.
        nbytes: its length.
        load_from_host, store_to_host: of earlier versions, without effect.
    """

    name: str
    dtype: str
    count: int
    nbytes: int
    load_from_host: bool = False
    store_to_host: bool = False


@dataclass(frozen=True)
class DomainBuffer:
    """A named part of a window, as later versions have it.

    Attributes:
        addr, nbytes: where it is, and how long.
        dtype, count: what is in it.
        worker: whose window it is in.
    """

    addr: int
    nbytes: int
    dtype: str
    count: int
    worker: int

    @property
    def base(self) -> int:
        """Returns where it is: addr."""
        return self.addr

    def place(self, nbytes: int) -> int:
        """Returns where so many bytes at its begin are.

        Raises:
            ValueError: it is shorter.
        """
        if nbytes > self.nbytes:
            raise ValueError(f"{nbytes} bytes of a buffer of {self.nbytes}")
        return self.addr

    def tensor(self, shapes: Sequence[int] | None = None, dtype: DataType | None = None) -> ContinuousTensor:
        """The tensor of its elements, for a task, in other shapes and of another dtype if these are given.

        Raises:
            KeyError: tasks have no tensors of its dtype.
            ValueError: it is longer than the buffer.
        """
        kind = DataType[self.dtype.upper()] if dtype is None else dtype
        tensor = ContinuousTensor.make(self.addr, (self.count,) if shapes is None else shapes, kind, child_memory=True)
        self.place(tensor.nbytes())
        return tensor


@dataclass
class ChipDomainContext:
    """A domain as one of its workers sees it.

    Attributes:
        domain_rank: the worker's place in the domain.
        device_ctx: the address of the CommContext that its kernels get.
        local_window_base: the address of its window.
        buffer_ptrs: the addresses of the buffers in its window, by name.
        buffers: the same buffers, as later versions have them.
    """

    name: str
    domain_rank: int
    domain_size: int
    device_ctx: int
    local_window_base: int
    actual_window_size: int
    buffer_ptrs: dict[str, int]
    buffers: dict[str, DomainBuffer] = field(default_factory=dict)


class CommDomainHandle:
    """A domain, which orch.allocate_domain made. At the end of a with block it is released.

    A released domain is not to be used for further tasks. Its memory is there until all tasks of the run have ended.
    """

    def __init__(
        self,
        name: str,
        contexts: Mapping[int, ChipDomainContext],
        allocation_id: int,
        on_release: Callable[[CommDomainHandle], None],
    ) -> None:
        self.name, self.allocation_id = name, allocation_id
        self.contexts = dict(contexts)
        self.workers = tuple(contexts)
        self._on_release = on_release
        self._released = self._freed = False

    def __getitem__(self, chip_idx: int) -> ChipDomainContext:
        """The domain as a worker sees it, by the worker's number.

        Raises:
            RuntimeError: the domain has been released.
            KeyError: the worker is no member.
        """
        if self._released:
            raise RuntimeError(
                f"domain {self.name!r} is already released: take what tasks need of it before the end of its with block"
            )
        return self.contexts[chip_idx]

    @property
    def released(self) -> bool:
        """Reports whether release has been called."""
        return self._released

    @property
    def freed(self) -> bool:
        """Reports whether its memory is gone."""
        return self._freed

    def release(self) -> None:
        """Says that no further tasks will use the domain. Again does nothing."""
        if not self._released:
            self._released = True
            self._on_release(self)

    def gone(self) -> None:
        """Notes that its memory has been freed."""
        self._released = self._freed = True

    def __enter__(self) -> CommDomainHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def __repr__(self) -> str:
        state = "freed" if self._freed else "released" if self._released else "live"
        return f"CommDomainHandle(name={self.name!r}, workers={self.workers}, {state})"


def check(name: str, workers: Sequence[int], count: int, window_size: int, buffers: Sequence[CommBufferSpec]) -> None:
    """Checks what a domain is to be made of, for so many workers in all.

    Raises:
        ValueError: workers is empty, names one twice or one that does not exist, or there are too many; a buffer's name
            occurs twice or its size is negative; or the buffers do not fit in the window.
    """
    said = f"allocate_domain({name!r})"
    if not 0 < len(workers) <= MOST_MEMBERS:
        raise ValueError(f"{said}: {len(workers)} workers; a domain has 1 to {MOST_MEMBERS}")
    if len(set(workers)) != len(workers):
        raise ValueError(f"{said}: workers {list(workers)} names one twice")
    if not all(0 <= worker < count for worker in workers):
        raise ValueError(f"{said}: workers {list(workers)}; there are workers 0 to {count - 1}")
    names = [b.name for b in buffers]
    if len(set(names)) != len(names):
        raise ValueError(f"{said}: buffers {names} names one twice")
    needed = sum(b.nbytes for b in buffers)
    if window_size < 1 or needed > window_size or any(b.nbytes < 0 for b in buffers):
        raise ValueError(f"{said}: buffers of {[b.nbytes for b in buffers]} bytes in a window of {window_size}")


def carved(buffers: Sequence[CommBufferSpec], base: int) -> dict[str, int]:
    """The addresses of a window's buffers, one after another from its base on."""
    places = {}
    for buffer in buffers:
        places[buffer.name] = base
        base += buffer.nbytes
    return places


def parts(buffers: Sequence[CommBufferSpec], base: int, worker: int) -> dict[str, DomainBuffer]:
    """The buffers of a worker's window, one after another from its base on."""
    places = carved(buffers, base)
    return {b.name: DomainBuffer(places[b.name], b.nbytes, b.dtype, b.count, worker) for b in buffers}
