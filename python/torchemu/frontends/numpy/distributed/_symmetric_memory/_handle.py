"""A rank's view of a symmetric tensor after the rendezvous: the peers' memory, and signals between ranks.

Barriers and signals are of the stream, as on a device. Elements are moved when the host calls, so the host waits where
order matters: until the others have called what they have to, without simulated time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from torchemu import dtypes, runtime
from torchemu.bridge.binding import go
from torchemu.bridge.calls import Call, issue
from torchemu.bridge.handles import Handle
from torchemu.c10d.checks import refuse_shards
from torchemu.c10d.membership import shared_membership
from torchemu.c10d.work import wait_on_host
from torchemu.frontends.numpy._device import device
from torchemu.frontends.numpy._tensor import Tensor, empty
from torchemu.frontends.numpy._tensor.storage import Storage
from torchemu.frontends.numpy.distributed._process_group import ProcessGroup
from torchemu.frontends.numpy.distributed._symmetric_memory._peers import (
    PeerStorage,
    allocated,
    handles_of,
    settle_stream,
    view,
)
from torchemu.runtime.rank_local import RankLocal

PAD_SIZE = 9216
"""Bytes of a signal pad."""

_SLOT = 4  # bytes of a signal

_BARRIER = Call.of("barrier", "all_reduce", "max")


_met_before: RankLocal[Counter[str]] = RankLocal(Counter)  # how many rendezvous there have been, by group


class _SymmetricMemory:
    """A symmetric tensor of a group, as one of the ranks knows it. ``rendezvous`` gives it.

    Attributes:
        rank, world_size: this rank's number in the group, and how many there are.
        device: this rank's.
        buffer_size, signal_pad_size: of each rank's memory and signal pad, in bytes.
        multicast_ptr: 0: there is no multicast.
        offset: of the rank's tensor in its memory, in bytes.
    """

    def __init__(self, name: str, group: ProcessGroup, tensors: Sequence[Tensor], pads: Sequence[Tensor]) -> None:
        self.rank, self.world_size = group.rank(), group.size()
        own = tensors[self.rank]
        self.device: device = own.device
        self.buffer_size, self.signal_pad_size = own._storage.nbytes, pads[self.rank].nbytes
        self.multicast_ptr = 0
        self.offset = own.storage_offset() * own.itemsize
        self._name, self._members = name, group.shared.members
        self._buffers, self._pads = self._reached(tensors), self._reached(pads)
        self._tokens: dict[int, Tensor] = {}
        self._sent: dict[tuple[int, int], Handle] = {}

    def _reached(self, tensors: Sequence[Tensor]) -> list[Storage]:
        """The ranks' memory, as this rank reaches it."""
        storages = [t._storage for t in tensors]
        return [
            storage if rank == self.rank else PeerStorage(storage, self._members[rank])
            for rank, storage in enumerate(storages)
        ]

    @property
    def buffer_ptrs(self) -> list[int]:
        """The addresses of the ranks' memories."""
        return [buffer.data_ptr() for buffer in self._buffers]

    @property
    def signal_pad_ptrs(self) -> list[int]:
        """The addresses of the ranks' signal pads."""
        return [pad.data_ptr() for pad in self._pads]

    # -- memory

    def get_buffer(self, rank: int, sizes: Sequence[int], dtype: Any, storage_offset: int = 0) -> Tensor:
        """A view of a rank's memory.

        Args:
            sizes, dtype: of the view.
            storage_offset: from the begin of the memory, in elements.

        Raises:
            RuntimeError: no such rank; the memory is smaller.
        """
        return self._view("get_buffer", self._buffers, rank, sizes, dtype, storage_offset)

    def get_remote_tensor(self, peer: int, sizes: Sequence[int], dtype: Any) -> Tensor:
        """A view of a rank's tensor: as get_buffer, from where the tensor begins."""
        kind = dtypes.parse(dtype)
        return self._view("get_buffer", self._buffers, peer, sizes, kind, self.offset // kind.itemsize)

    def get_signal_pad(
        self, rank: int, sizes: Sequence[int] = (), dtype: Any = None, storage_offset: int = 0
    ) -> Tensor:
        """A view of a rank's signal pad; without sizes all of it, without dtype of uint32."""
        kind = dtypes.parse("uint32" if dtype is None else dtype)
        shape = sizes or (self.signal_pad_size // kind.itemsize - storage_offset,)
        return self._view("get_signal_pad", self._pads, rank, shape, kind, storage_offset)

    def _view(
        self, function: str, each: Sequence[Storage], rank: int, sizes: Sequence[int], dtype: Any, offset: int
    ) -> Tensor:
        self._check_rank(function, rank)
        kind, shape = dtypes.parse(dtype), tuple(sizes)
        wanted, has = (math.prod(shape) + offset) * kind.itemsize, each[rank].nbytes
        if offset < 0 or wanted > has:
            raise RuntimeError(
                f"SymmetricMemory::{function}: the requested size ({wanted} bytes) exceeds the allocated size "
                f"({has} bytes)"
            )
        return view(each[rank], shape, kind, offset, self.device)

    def _check_rank(self, function: str, rank: int) -> None:
        if not 0 <= rank < self.world_size:
            raise RuntimeError(f"SymmetricMemory::{function}: there is no rank {rank}: the group has {self.world_size}")

    # -- order

    def barrier(self, channel: int = 0, timeout_ms: int = 0) -> None:
        """Makes the current stream wait until all ranks' streams have come here; the host until all have called it.

        Args:
            channel: barriers of different channels have nothing to do with each other.
            timeout_ms: how long the host waits for it, in simulated time; 0: it does not.

        Raises:
            RuntimeError: no such channel; the timeout has passed.
        """
        self._check_channel(channel)
        token = self._token(channel)
        meeting, number = self._meeting(f"barriers, channel {channel}"), token._handle
        self._ordered(
            lambda stream, site, waits: issue(meeting, stream, site, waits, _BARRIER, number, number),
            token,
            timeout_ms,
            f"barrier (channel {channel})",
        )

    def put_signal(self, dst_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Signals a rank, once the current stream is there and the signal before, on the channel, was waited for.

        Args:
            timeout_ms: means nothing here: who waits for a signal says how long.

        Raises:
            RuntimeError: no such rank or channel.
        """
        self._check_rank("put_signal", dst_rank)
        self._check_channel(channel)
        settle_stream()
        context = runtime.current()
        before = self._sent.get((dst_rank, channel))
        if before is not None:
            go.StreamWait(context.stream, before.number)
        token = empty(_SLOT, dtype="uint8", device=self.device)
        signals, site = self._meeting("signals"), context.world.site()
        sent = go.Post(signals, context.stream, site, True, True, dst_rank, channel, token._handle)
        self._sent[dst_rank, channel] = Handle(sent)

    def wait_signal(self, src_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Makes the current stream wait for a rank's next signal on the channel.

        Args:
            timeout_ms: how long the host waits for it, in simulated time; 0: it does not.

        Raises:
            RuntimeError: no such rank or channel; the timeout has passed.
        """
        self._check_rank("wait_signal", src_rank)
        self._check_channel(channel)
        token = empty(_SLOT, dtype="uint8", device=self.device)
        signals, number = self._meeting("signals"), token._handle
        self._ordered(
            lambda stream, site, waits: go.Post(signals, stream, site, waits, False, src_rank, channel, number),
            token,
            timeout_ms,
            f"wait_signal from rank {src_rank} (channel {channel})",
        )

    def _ordered(self, issue: Any, token: Tensor, timeout_ms: int, what: str) -> None:
        """Issues what this rank's stream is to wait for, and waits on the host until others have done their part."""
        settle_stream()
        context = runtime.current()
        site = context.world.site()
        if timeout_ms <= 0:
            issue(context.stream, site, False)
            token._storage.settle(token)
            return
        work = Handle(issue(context.stream, site, True))
        late = f"SymmetricMemory: {what} timed out after {timeout_ms} ms"
        wait_on_host(work.number, timedelta(milliseconds=timeout_ms), late)

    def _token(self, channel: int) -> Tensor:
        if channel not in self._tokens:
            self._tokens[channel] = empty(1, dtype="uint8", device=self.device)
        return self._tokens[channel]

    def _check_channel(self, channel: int) -> None:
        operations, most = "channel for barrier(), put_signal() and wait_signal()", self._channels() - 1
        if channel < 0:
            raise RuntimeError(f"{operations} must be greater than 0 (got {channel})")
        if channel > most:
            raise RuntimeError(f"The maximum supported {operations} is {most} (got {channel})")

    def _channels(self) -> int:
        return self.signal_pad_size // _SLOT // self.world_size

    def _meeting(self, what: str) -> int:
        """The core's group for one kind of operation: kinds have their own orders."""
        name = f"{self._name}, {what}"
        return shared_membership(name, self._members, name).handle

    # -- collectives

    def collective(self, call: Call, output: Tensor, given: Tensor) -> None:
        """Puts a collective of the ranks on the current stream."""
        context = runtime.current()
        meeting, site = self._meeting("collectives"), context.world.site()
        issue(meeting, context.stream, site, False, call, output._handle, given._handle)


# -- how ranks come by it


def rendezvous(t: Tensor, group: ProcessGroup) -> _SymmetricMemory:
    """Returns what the group's ranks, each with its tensor, know of the others' memory; the same as before for a tensor
    of memory that they have met with. The host waits until all have come.

    Raises:
        RuntimeError: the tensor is not symmetric, or the ranks' memories are of different sizes.
        NotImplementedError: the group is that of a single worker.
    """
    refuse_shards(group, "rendezvous")
    handles = handles_of(t._storage)
    if handles is None:
        raise RuntimeError(
            "Pointer not within any SymmetricMemory allocation, is the tensor allocated from SymmetricMemory?"
        )
    if group.group_name not in handles:
        handles[group.group_name] = _met(t, group)
    handle: _SymmetricMemory = handles[group.group_name]
    return handle


def _met(t: Tensor, group: ProcessGroup) -> _SymmetricMemory:
    """Brings this rank's tensor and a new signal pad to the others, and takes theirs."""
    met = _met_before.get()
    met[group.group_name] += 1
    name = f"symmetric memory {met[group.group_name]} of group {group.group_name}"
    pad = allocated((PAD_SIZE // _SLOT,), dtypes.parse("uint32"), t.device)
    table = _table(name, group.size())
    table.entries[group.rank()] = (t, pad)
    _wait_for_all(shared_membership(name, group.shared.members, name).handle, t.device)
    table.taken += 1
    if table.taken == group.size():
        del _kept()[_Table, name]
    tensors, pads = zip(*table.entries, strict=True)
    _check_sizes(tensors, pads)
    return _SymmetricMemory(name, group, tensors, pads)


@dataclass
class _Table:
    """The table of a rendezvous: the ranks' tensors and signal pads, and how many have taken the others'."""

    entries: list[Any]
    taken: int = 0


def _kept() -> dict[object, Any]:
    context = runtime.current()
    return context.own if context.tasks is None else context.tasks.shared


def _table(name: str, size: int) -> _Table:
    found: _Table = _kept().setdefault((_Table, name), _Table([None] * size))
    return found


def _wait_for_all(meeting: int, where: device) -> None:
    context = runtime.current()
    token = empty(1, dtype="uint8", device=where)._handle
    call = Call.of("rendezvous", "all_reduce", "max")
    work = Handle(issue(meeting, context.stream, context.world.site(), True, call, token, token))
    context.wait(work.number)


def _check_sizes(tensors: Sequence[Tensor], pads: Sequence[Tensor]) -> None:
    for what, each in (("memory", tensors), ("a signal pad", pads)):
        sizes = [t._storage.nbytes for t in each]
        for rank, size in enumerate(sizes):
            if size != sizes[0]:
                raise RuntimeError(
                    f"rendezvous: rank {rank} has {what} of {size} bytes and rank 0 of {sizes[0]}: all ranks must "
                    "allocate as much"
                )
