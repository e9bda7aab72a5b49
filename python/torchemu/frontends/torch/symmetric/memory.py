"""A rank's view of a tensor that each rank of a group has, after they have met.

Ranks are in one process, so a peer's memory is shown under the name of the own device. Operations on it are computed
where they are issued, and barriers and signals order them; what they cost is in torchemu.frontends.torch.device.peers.
"""

from __future__ import annotations

import ctypes
import warnings
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch.distributed import distributed_c10d as c10d

from torchemu import runtime
from torchemu.frontends.torch.device import device_program_memory, peers, places
from torchemu.frontends.torch.groups import AhbmGroup
from torchemu.frontends.torch.session import current
from torchemu.frontends.torch.symmetric import backends, windows
from torchemu.frontends.torch.symmetric.order import PAD_SIZE, Order, settle
from torchemu.runtime import footprints
from torchemu.runtime.rank_local import RankLocal

_counts: RankLocal[Counter[object]] = RankLocal(Counter)  # rendezvous so far, by the groups' memberships

_pad_size: RankLocal[list[int]] = RankLocal(lambda: [PAD_SIZE])

_MULTICAST = 1 << 62
"""A bit of addresses of all ranks' memory, by which they are no one's."""

_handles: RankLocal[dict[tuple[int, object], SymmetricMemory]] = RankLocal(dict)
"""Results of rendezvous, by the memory's address and the group's membership. Peers have the memory: it stays."""


_persistent: RankLocal[dict[int, _Persistent]] = RankLocal(dict)
"""Allocations under numbers."""


class _Sized(type):
    """The class of a class that has a size of signal pads, each rank its own."""

    @property
    def signal_pad_size(cls) -> int:
        """Returns how many bytes a signal pad of the running rank's gets."""
        return _pad_size.get()[0]

    @signal_pad_size.setter
    def signal_pad_size(cls, size: int) -> None:
        _pad_size.get()[0] = int(size)


class SymmetricMemory(metaclass=_Sized):
    """One rank's view of a buffer that each rank of a group has.

    Attributes:
        rank: the group rank.
        world_size: how many ranks the group has.
        device: this rank's.
        buffer_size, signal_pad_size: bytes of each rank's memory, and of its signal pad.
        buffer_ptrs, signal_pad_ptrs: addresses, by rank.
        buffer_ptrs_dev, signal_pad_ptrs_dev: where tables are in the device's memory, for kernels: of the addresses
            at which these find the ranks' buffers and signal pads.
        offset: of the rank's tensor in its memory, in bytes.
        multicast_ptr: an address of all ranks' memory, which kernels cannot use; 0 where their switch has no multicast.
    """

    def __init__(
        self, group: AhbmGroup, order: Order, tensors: Sequence[torch.Tensor], pads: Sequence[torch.Tensor]
    ) -> None:
        self.rank, self.world_size = group.rank(), group.size()
        own, self._order, self._homes = tensors[self.rank], order, group.membership.members
        self.device, self.offset = own.device, own.storage_offset() * own.itemsize
        self._buffers, self._pads = self._reached(group, tensors), self._reached(group, pads)
        self.signal_pad_size = int(self._pads[self.rank].nbytes)
        self.buffer_size = int(self._buffers[self.rank].nbytes)
        self.buffer_ptrs = [t.data_ptr() for t in self._buffers]
        self.signal_pad_ptrs = [t.data_ptr() for t in self._pads]
        device_program_memory.current().is_on = True
        self.multicast_ptr = _MULTICAST | self.buffer_ptrs[0] if backends.has_multicast(self._homes) else 0
        self._tables: list[torch.Tensor] | None = None
        if windows.are_wanted() or backends.chosen() != backends.CUDA:
            self._share()

    @property
    def buffer_ptrs_dev(self) -> int:
        """Returns the address of the table of buffers."""
        return self._share()[0].data_ptr()

    @property
    def signal_pad_ptrs_dev(self) -> int:
        """Returns the address of the table of signal pads."""
        return self._share()[1].data_ptr()

    def _share(self) -> list[torch.Tensor]:
        """Gives the memory to device programs, once, and returns tables of where these find it."""
        if self._tables is None:
            name = self._order.name
            both = ((name, self._buffers), (f"signal pads of {name}", self._pads))
            places = [windows.share(what, parts, self._homes) for what, parts in both]
            self._tables = [torch.tensor(each, dtype=torch.int64, device=self.device) for each in places]
        return self._tables

    def _reached(self, group: AhbmGroup, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Returns the ranks' memory, as this rank reaches it."""
        where = places.of(tensors[self.rank])
        assert where is not None
        homes = group.membership.members
        return [_memory(t) if rank == self.rank else _shown(t, where, homes[rank]) for rank, t in enumerate(tensors)]

    @staticmethod
    def empty_strided_p2p(
        size: Sequence[int],
        stride: Sequence[int],
        dtype: torch.dtype,
        device: torch.device,
        group_name: str | None = None,
        alloc_id: int | None = None,
    ) -> torch.Tensor:
        """Allocates memory for a rendezvous: of a group, where the rendezvous does not say which. It is zero, as the
        CUDA backend's is. Under a number it is the same memory again, once nobody has the tensor that was there.

        Raises:
            RuntimeError: on the host, or in a run without data; somebody has the tensor of the number, or it had
                another size.
        """
        if device.type not in places.ACCELERATORS:
            raise RuntimeError(f"symmetric memory is on devices, not on {device}")
        if not current().data:
            raise RuntimeError("symmetric memory: a run without data (--no-data) has no memory that ranks share")
        made = torch.empty_strided(size, stride, dtype=dtype, device=device)
        backend = backends.used()
        if not made.nbytes:
            return made
        storage = made.untyped_storage()
        ctypes.memset(storage.data_ptr(), 0, storage.nbytes())
        made = staying(made, backend) if alloc_id is None else _allocated_again(alloc_id, made, backend)
        made.untyped_storage()._group_name = group_name
        return made

    @staticmethod
    def rendezvous(tensor: torch.Tensor, group_name: str | None = None) -> SymmetricMemory | None:
        """Gives each rank of a group access to the tensors of all; the same as before for memory with which they have
        met. All call it, in the same order. For memory that is not symmetric the backend CUDA warns, and there is none.

        Raises:
            RuntimeError: no group is named, here or where the tensor was allocated; another rank's tensor has another
                size; the tensor is not of symmetric memory, and the backend another one.
        """
        if tensor.numel() and not is_symmetric(tensor):
            text = "Pointer not within any SymmetricMemory allocation, is the tensor allocated from SymmetricMemory?"
            if backends.chosen() != backends.CUDA:
                raise RuntimeError(text)
            warnings.warn(text, stacklevel=2)
            return None
        group_name = group_name or getattr(tensor.untyped_storage(), "_group_name", None)
        if not group_name:
            raise RuntimeError(
                "CUDASymmetricMemory::rendezvous: `group_name` is neither specified during allocation nor passed to "
                "rendezvous()."
            )
        group, handles = group_of(group_name), _handles.get()
        key = tensor.untyped_storage().data_ptr(), group.membership.key
        if key not in handles:
            handles[key] = _after_meeting(group, tensor)
        return handles[key]

    @staticmethod
    def is_symm_mem_tensor(tensor: torch.Tensor) -> bool:
        """Reports whether a tensor is in memory of a rendezvous, this rank's or a peer's."""
        return is_symmetric(tensor)

    @staticmethod
    def set_group_info(group_name: str, rank: int, world_size: int, store: Any) -> None:
        """Means nothing: groups are known."""

    @staticmethod
    def has_multicast_support(device_type: Any, device_idx: int) -> bool:
        """Reports whether the switches of the topology's nodes multicast, and add up."""
        return backends.has_multicast()

    @staticmethod
    def set_backend(name: str) -> None:
        """Makes a backend the one that memory is allocated by; see backends.choose."""
        backends.choose(name)

    @staticmethod
    def get_backend(device: Any) -> str | None:
        """Returns the name of the rank's backend; None on the host."""
        return backends.chosen() if torch.device(device).type in places.ACCELERATORS else None

    @staticmethod
    def get_mempool_allocator(device: Any) -> SymmetricAllocator:
        """Returns what makes the memory of a `torch.cuda.MemPool` symmetric."""
        return SymmetricAllocator()

    @staticmethod
    def memset32(tensor: torch.Tensor, offset: int, val: int, count: int = 1) -> torch.Tensor:
        """Sets so many words, from one on, when the current stream comes there. Returns the tensor.

        Raises:
            RuntimeError: the tensor is no row of uint32; a word or value that it cannot have.
        """
        return _set_words("memset32_", tensor, offset, val, count)

    @staticmethod
    def stream_write_value32(tensor: torch.Tensor, offset: int, val: int) -> torch.Tensor:
        """Sets a word when the current stream comes there, after all that was on it before. Returns the tensor.

        Raises:
            RuntimeError: as memset32.
        """
        return _set_words("stream_write_value32_", tensor, offset, val, 1)

    def get_buffer(
        self, rank: int, sizes: Sequence[int], dtype: torch.dtype, storage_offset: int | None = 0
    ) -> torch.Tensor:
        """Returns a tensor on a rank's buffer, from so many elements on.

        Raises:
            RuntimeError: there is no such rank, or the buffer is too small.
        """
        return self._part("get_buffer", self._buffers, rank, sizes, dtype, storage_offset or 0)

    def get_remote_tensor(self, peer: int, sizes: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Returns a tensor on a rank's buffer, from where this rank's tensor begins."""
        return self.get_buffer(peer, sizes, dtype, self.offset // dtype.itemsize)

    def get_signal_pad(
        self, rank: int, sizes: Sequence[int] = (), dtype: torch.dtype | None = None, storage_offset: int | None = 0
    ) -> torch.Tensor:
        """Returns a tensor on a rank's signal pad, all of it without sizes; of 32-bit integers without a dtype."""
        dtype = torch.uint32 if dtype is None else dtype
        sizes = sizes or (self.signal_pad_size // dtype.itemsize,)
        return self._part("get_signal_pad", self._pads, rank, sizes, dtype, storage_offset or 0)

    def _part(
        self, function: str, parts: Sequence[torch.Tensor], rank: int, sizes: Sequence[int], dtype: Any, first: int
    ) -> torch.Tensor:
        if not 0 <= rank < self.world_size:
            raise RuntimeError(f"SymmetricMemory::{function}: there is no rank {rank}: the group has {self.world_size}")
        start, wanted = first * dtype.itemsize, (torch.Size(sizes).numel() + first) * dtype.itemsize
        if first < 0 or wanted > parts[rank].nbytes:
            raise RuntimeError(
                f"SymmetricMemory::{function}: the requested size ({wanted} bytes) exceeds the allocated size "
                f"({parts[rank].nbytes} bytes)"
            )
        return parts[rank][start:wanted].view(dtype).view(sizes)

    def barrier(self, channel: int = 0, timeout_ms: int = 0) -> None:
        """Ends, on the current stream, after it has begun for all ranks; see Order.barrier."""
        self._order.barrier(channel, timeout_ms)

    def put_signal(self, dst_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Sends a rank a signal, after what is on the current stream. Who waits for it says how long."""
        self._order.put_signal(dst_rank, channel)

    def wait_signal(self, src_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Lets the current stream wait for a rank's signal; see Order.wait_signal."""
        self._order.wait_signal(src_rank, channel, timeout_ms)

    def signal_put(self, peer: int) -> None:
        """Tells a rank of a put, after what is on the current stream; see Order.put_signal."""
        self._order.put_signal(peer, 0, "signals of puts")

    def wait_for_put(self, peer: int) -> None:
        """Lets the current stream wait until a rank has told of a put; see Order.wait_signal."""
        self._order.wait_signal(peer, 0, kind="signals of puts")


class SymmetricAllocator:
    """An allocator for a `torch.cuda.MemPool`: tensors that are made in the pool are in symmetric memory."""

    def made(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns a tensor that was made in the pool, as one in symmetric memory."""
        if not tensor.nbytes or is_symmetric(tensor) or places.of(tensor) is None or not current().data:
            return tensor
        return staying(tensor, backends.used())


def handle_of(tensor: torch.Tensor) -> SymmetricMemory:
    """Returns the result of the first rendezvous with the memory that a tensor is in.

    Raises:
        RuntimeError: there was none.
    """
    start = tensor.untyped_storage().data_ptr()
    for (place, _), handle in _handles.get().items():
        if place == start:
            return handle
    raise RuntimeError("the tensor's memory has not met with that of other ranks: call symm_mem.rendezvous first")


def backend_of(tensor: torch.Tensor) -> str | None:
    """Returns the backend that a tensor's memory was allocated by; None for memory that is not symmetric."""
    if peers.home_of(tensor) is not None:
        return backends.chosen()
    return getattr(tensor.untyped_storage(), "_shared", None)


def _set_words(function: str, tensor: torch.Tensor, offset: int, value: int, count: int) -> torch.Tensor:
    if tensor.dim() != 1 or not tensor.is_contiguous() or tensor.dtype is not torch.uint32:
        raise RuntimeError(f"symm_mem::{function}: input must be a flat, contiguous uint32 tensor.")
    if offset < 0 or count < 1:
        raise RuntimeError(f"symm_mem::{function}: offset must be 0 or more, and count positive: {offset}, {count}")
    if not 0 <= value < 1 << 32:
        raise RuntimeError(f"symm_mem::{function}: val must be in the range of [0, {(1 << 32) - 1}] (uint32_t).")
    if offset + count > tensor.numel():
        raise RuntimeError(
            f"symm_mem::{function}: offset + count ({offset + count}) exceeded the numel of the input "
            f"({tensor.numel()})"
        )
    words, watch = tensor[offset : offset + count], device_program_memory.current()
    if watch.is_on or not is_symmetric(words):  # kernels that are launched later may wait for what only this rank has
        settle()
        watch.store_words(function.strip("_"), words, value)
    else:
        words.fill_(value)
    return tensor


def group_of(name: str) -> AhbmGroup:
    """Returns the running rank's group of a name."""
    found: Any = c10d._resolve_process_group(name)
    return found


@dataclass
class _Table:
    """A table of what the ranks bring to a rendezvous: tensors and signal pads, by group rank.

    Attributes:
        taken: how many ranks have got the others'.
    """

    tensors: dict[int, torch.Tensor] = field(default_factory=dict)
    pads: dict[int, torch.Tensor] = field(default_factory=dict)
    taken: int = 0


def _after_meeting(group: AhbmGroup, tensor: torch.Tensor) -> SymmetricMemory:
    """Returns what a rank has access to after it has met with the others, each with its tensor."""
    footprints.hide()
    where, membership, counts = places.of(tensor), group.membership, _counts.get()
    assert where is not None
    counts[membership.key] += 1
    name = f"symmetric memory {counts[membership.key]} of group {membership.name}"
    order = Order(name, group.rank(), membership.members, where)
    table = _met(name, group, order, tensor)
    tensors, pads = ([each[r] for r in range(group.size())] for each in (table.tensors, table.pads))
    sizes = [_nbytes(t) for t in tensors]
    for rank, size in enumerate(sizes):
        if size != sizes[0]:
            raise RuntimeError(
                f"rendezvous: rank {rank} has memory of {size} bytes and rank 0 of {sizes[0]}: all ranks must allocate "
                "as much"
            )
    return SymmetricMemory(group, order, tensors, pads)


def _met(name: str, group: AhbmGroup, order: Order, tensor: torch.Tensor) -> _Table:
    """Brings this rank's tensor and a new signal pad to the others, and returns those of all."""
    context, key = runtime.current(), (_Table, name, group.membership.key)
    kept = context.own if context.tasks is None else context.tasks.shared
    table: _Table = kept.setdefault(key, _Table())
    table.tensors[group.rank()] = tensor
    pad = torch.zeros(SymmetricMemory.signal_pad_size, dtype=torch.uint8, device=tensor.device)
    table.pads[group.rank()] = staying(pad, backends.chosen())
    order.meet()
    table.taken += 1
    if table.taken == group.size():
        del kept[key]
    return table


class _Persistent(NamedTuple):
    """Memory that was allocated under a number.

    Attributes:
        memory: a tensor that keeps it.
        last: the tensor that the program has got there, as long as somebody has it.
    """

    memory: torch.Tensor
    last: weakref.ref[torch.Tensor]


def _allocated_again(number: int, made: torch.Tensor, backend: str) -> torch.Tensor:
    """Returns a tensor like one that was made, in the memory of the last one with a number, or in its own."""
    known = _persistent.get().get(number)
    memory = made if known is None else known.memory
    function = "SymmetricMemory::empty_strided_p2p_persistent: "
    if known is not None and known.last() is not None:
        raise RuntimeError(
            f"{function}can not allocate with alloc_id == {number} because a previous allocation with the same "
            "alloc_id is still active."
        )
    if _nbytes(memory) != _nbytes(made):
        raise RuntimeError(
            f"{function}requested allocation size ({_nbytes(made)}) is different from the size of a previous "
            f"allocation with the same alloc_id {_nbytes(memory)}"
        )
    again = memory.view(torch.uint8).view(made.dtype).as_strided(made.size(), made.stride())
    given = staying(again, backend)
    _persistent.get()[number] = _Persistent(memory, weakref.ref(given))
    return given


def is_symmetric(tensor: torch.Tensor) -> bool:
    """Reports whether a tensor is in memory that was allocated for a rendezvous."""
    return getattr(tensor.untyped_storage(), "_shared", False) or peers.home_of(tensor) is not None


def _nbytes(tensor: torch.Tensor) -> int:
    """Returns how many bytes the memory has that a tensor is in."""
    return int(tensor.untyped_storage().nbytes())


def _memory(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the bytes of the memory that a tensor is in."""
    nbytes = _nbytes(tensor)
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage(), 0, (nbytes,))


def _shown(tensor: torch.Tensor, where: places.Place, home: int) -> torch.Tensor:
    """Returns the memory of a tensor of the World's rank home, under the name of another device."""
    if not _nbytes(tensor):
        return torch.empty(0, dtype=torch.uint8, device=where.device)
    return peers.note(_lent(tensor, where), home)


def staying(tensor: torch.Tensor, backend: str) -> torch.Tensor:
    """Returns a tensor in the memory of another, which PyTorch refuses to resize: peers will have its address.

    Args:
        backend: that the memory is said to be allocated by.
    """
    where = places.of(tensor)
    assert where is not None
    memory = _lent(tensor, where)
    memory.untyped_storage()._shared = backend
    return memory.view(tensor.dtype).as_strided(tensor.size(), tensor.stride())


def _lent(tensor: torch.Tensor, where: places.Place) -> torch.Tensor:
    """Returns the bytes of the memory that a tensor is in, as a tensor on a device."""
    memory: Any = (ctypes.c_uint8 * _nbytes(tensor)).from_address(tensor.untyped_storage().data_ptr())
    memory.of = tensor
    return places.name(torch.frombuffer(memory, dtype=torch.uint8), where)
