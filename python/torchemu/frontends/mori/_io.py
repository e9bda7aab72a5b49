"""mori.io: transfers between registered memory that a host posts to network cards."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.frontends.mori._io_types import (
    BackendType,
    EngineDesc,
    IOEngineConfig,
    MemoryDesc,
    MemoryLocationType,
    RdmaBackendConfig,
    StatusCode,
    TransferStatus,
)
from torchemu.frontends.mori._launch import NIC, UNITS, Launch, Step, detach
from torchemu.frontends.mori._unwaited import Use, note_use, recorded
from torchemu.language import _windows
from torchemu.language._machine import machine_of
from torchemu.runtime.buffer import Buffer, Memory, buffer_of, elements
from torchemu.runtime.waiting import host_time

_PS_PER_MS = 10**9


@dataclass
class _Known:
    """The table that the engines of a World share.

    Attributes:
        inbound: transfers by the key of the engine that they reach, that of the one which has begun them, and their
            number.
        numbers: of transfers.
    """

    inbound: dict[tuple[str, str, int], TransferStatus] = field(default_factory=dict)
    numbers: Any = field(default_factory=lambda: itertools.count(1))


_known: weakref.WeakKeyDictionary[runtime.World, _Known] = weakref.WeakKeyDictionary()


@dataclass
class _Memory:
    """Registered memory of an engine.

    Attributes:
        given: what was registered; None if it is known by its address only.
        attached: memory over which there is a window of launches.
        window: the core's, over memory that is known by its address only.
    """

    given: Any = None
    attached: Memory | None = None
    window: int = 0

    @property
    def on_device(self) -> Any:
        """The tensor, if it is on a device; or else None."""
        buffer = None if self.given is None else buffer_of(self.given)
        return self.given if buffer is not None and buffer.device.is_sip else None

    def part(self, start: int, nbytes: int) -> list[Any]:
        """Returns the elements that bytes are of, as a tensor; none where there is none."""
        buffer = None if self.given is None else buffer_of(self.given)
        if buffer is None or not nbytes:
            return []
        size = buffer.dtype.itemsize
        return [self.given.detach().reshape(-1)[start // size : -(-(start + nbytes) // size)]]


def _start(window: int, rank: int) -> int:
    return int(go.PrimAddress(window, rank, 0))


class IOEngine:
    """Transfers between memory of this rank and of others, over the network card, posted by the host. They are in no
    order with the device's streams: whoever needs one synchronizes.

    Args:
        key: its name, which no other engine has.
        config: where it listens.
    """

    def __init__(self, key: str, config: IOEngineConfig) -> None:
        context = runtime.current()
        self.key = key
        self._desc = EngineDesc(key, config.host, config.port, context.rank)
        self._shared = _known.setdefault(context.world, _Known())
        self._machine = machine_of(context.world)
        self._config: RdmaBackendConfig | None = None
        self._remote: dict[str, EngineDesc] = {key: self._desc}
        self._memory: dict[int, _Memory] = {}
        self._stream: Handle | None = None

    def get_engine_desc(self) -> EngineDesc:
        """Returns what others register it by."""
        return self._desc

    def create_backend(self, type: Any, config: RdmaBackendConfig | None = None) -> None:  # noqa: A002
        """Makes transfers go by network cards.

        Raises:
            NotImplementedError: another backend than RDMA.
        """
        if type is not BackendType.RDMA:
            raise NotImplementedError(f"backend {getattr(type, 'name', type)}: there is BackendType.RDMA")
        self._config = RdmaBackendConfig() if config is None else config

    def remove_backend(self, type: Any) -> None:  # noqa: A002
        """Undoes create_backend."""
        self._config = None

    def register_remote_engine(self, engine_desc: EngineDesc) -> None:
        """Makes another engine known, whose memory transfers then reach."""
        self._remote[engine_desc.key] = engine_desc

    def deregister_remote_engine(self, engine_desc: EngineDesc) -> None:
        """Undoes register_remote_engine."""
        self._remote.pop(engine_desc.key, None)

    # -- memory

    def register_torch_tensor(self, tensor: Any) -> MemoryDesc:
        """Makes a tensor's memory known, on a device or on the host.

        Raises:
            TypeError: it is no tensor.
            RuntimeError: it is not contiguous.
        """
        buffer = buffer_of(tensor)
        if buffer is None:
            raise TypeError(f"register_torch_tensor of a {type(tensor).__name__}: it is no tensor")
        if not buffer.is_contiguous():
            raise RuntimeError("input tensor must be contiguous")
        on_device = buffer.device.is_sip
        number = (buffer.device.index or 0) if on_device else -1
        loc = MemoryLocationType.GPU if on_device else MemoryLocationType.CPU
        return self._register(int(tensor.data_ptr()), buffer.nbytes, number, loc, tensor)

    def register_memory(self, data: int, size: int, device_id: int, loc: Any) -> MemoryDesc:
        """Makes memory at an address known.

        Raises:
            ValueError: there are no such bytes.
        """
        if data <= 0 or size < 1:
            raise ValueError(f"there are no {size} bytes at address {data:#x}")
        return self._register(data, size, device_id, loc, None)

    def _register(self, data: int, size: int, device: int, loc: Any, tensor: Any) -> MemoryDesc:
        _see_stream()
        number, rank = next(self._shared.numbers), self._desc.rank
        held, known = go.PrimHolding(self._machine.handle, data, rank), _Memory(tensor)
        buffer = None if tensor is None else buffer_of(tensor)
        name = f"memory {number} of engine {self.key}"
        if held:
            place = int(held[0] + data - held[1])
        elif buffer is not None:
            known.attached = buffer.memory
            window = _windows.attach(runtime.current(), buffer.memory, name)
            self._show(window, buffer)
            place = _start(window, rank)
            place += data - buffer.memory.data_ptr()
        else:
            known.window = go.PrimAttach(self._machine.handle, name, rank, data, size)
            place = _start(known.window, rank)
        self._memory[number] = known
        return MemoryDesc(self.key, number, device, data, size, loc, place)

    def deregister_memory(self, mem_desc: MemoryDesc) -> None:
        """Undoes a registration.

        Raises:
            ValueError: the engine does not know the memory.
        """
        known = self._memory.pop(mem_desc.id, None)
        if known is None:
            raise ValueError(f"engine {self.key} knows no memory {mem_desc.id} of engine {mem_desc.engine_key}")
        context = runtime.current()
        if context.outstanding is not None and known.given is not None:
            context.outstanding.look("deregister_memory", [], [known.given], elements)
        if known.attached is not None:
            detach(runtime.current(), known.attached)
            if known.attached not in _windows.attached(runtime.current()):
                self._show(0, buffer_of(known.given))
        if known.window:
            go.PrimFree(known.window)
            go.Release(known.window)

    def _show(self, window: int, buffer: Buffer) -> None:
        """Lets the checker see what the rank does with memory that others reach; no more if there is no window."""
        if runtime.current().world.ordered:
            go.PrimShow(self._machine.handle, window, self._desc.rank, buffer.core_handle)

    # -- transfers

    def allocate_transfer_uid(self) -> int:
        """Returns a number for a transfer, which no other one has."""
        return int(next(self._shared.numbers))

    def write(
        self, local: MemoryDesc, local_offset: int, remote: MemoryDesc, remote_offset: int, size: int, uid: int
    ) -> TransferStatus:
        """Writes bytes of the own memory to another engine's. The host goes on."""
        return self.batch_write(local, [local_offset], remote, [remote_offset], [size], uid)

    def read(
        self, local: MemoryDesc, local_offset: int, remote: MemoryDesc, remote_offset: int, size: int, uid: int
    ) -> TransferStatus:
        """Reads bytes of another engine's memory into the own. The host goes on."""
        return self.batch_read(local, [local_offset], remote, [remote_offset], [size], uid)

    def batch_write(
        self, local: MemoryDesc, local_offsets: Sequence[int], remote: MemoryDesc, remote_offsets: Sequence[int],
        sizes: Sequence[int], uid: int,
    ) -> TransferStatus:  # fmt: skip
        """Writes several runs of bytes in one transfer."""
        runs = list(zip(remote_offsets, local_offsets, sizes, strict=True))
        return self._transfer(local, remote, runs, uid, writes=True)

    def batch_read(
        self, local: MemoryDesc, local_offsets: Sequence[int], remote: MemoryDesc, remote_offsets: Sequence[int],
        sizes: Sequence[int], uid: int,
    ) -> TransferStatus:  # fmt: skip
        """Reads several runs of bytes in one transfer."""
        runs = list(zip(remote_offsets, local_offsets, sizes, strict=True))
        return self._transfer(local, remote, runs, uid, writes=False)

    def _transfer(
        self, local: MemoryDesc, remote: MemoryDesc, runs: list[tuple[int, int, int]], uid: int, writes: bool
    ) -> TransferStatus:
        """Begins a transfer of runs: offsets in the remote and in the local memory, and bytes."""
        wrong = self._refusal(local, remote, runs)
        status = TransferStatus(*wrong) if wrong is not None else TransferStatus()
        self._shared.inbound[remote.engine_key, self.key, uid] = status
        if wrong is None:
            ends = [(remote.place + far, local.place + near, nbytes) for far, near, nbytes in runs if nbytes]
            moves = ends if writes else [(near, far, nbytes) for far, near, nbytes in ends]
            known = self._memory[local.id]
            end = self._post(self._remote[remote.engine_key].rank, moves, known.on_device)
            parts = [part for _, near, nbytes in runs for part in known.part(near, nbytes)]
            status.begin(end, _use(end, parts, writes))
        return status

    def _refusal(
        self, local: MemoryDesc, remote: MemoryDesc, runs: list[tuple[int, int, int]]
    ) -> tuple[StatusCode, str] | None:
        if self._config is None:
            return StatusCode.ERR_BAD_STATE, f"engine {self.key} has no backend: call create_backend first"
        if remote.engine_key not in self._remote:
            return StatusCode.ERR_NOT_FOUND, f"engine {self.key} does not know engine {remote.engine_key!r}"
        if local.id not in self._memory:
            return StatusCode.ERR_NOT_FOUND, f"engine {self.key} knows no memory {local.id}"
        for far, near, nbytes in runs:
            for where, offset, memory in (("remote", far, remote), ("local", near, local)):
                if offset < 0 or nbytes < 0 or offset + nbytes > memory.size:
                    return (
                        StatusCode.ERR_INVALID_ARGS,
                        f"{nbytes} bytes from {offset} on are not in the {memory.size} bytes of the {where} memory",
                    )
        return None

    def _post(self, peer: int, moves: list[tuple[int, int, int]], tensor: Any) -> Handle:
        """Has copies made on a stream of the engine's own, and returns the event of their end."""
        context = runtime.current()
        context.issue()
        if self._stream is None:
            self._stream = Handle(go.NewStream(context.world.handle, context.rank))
        assert self._config is not None
        config, engine = self._config, UNITS if peer == context.rank else NIC
        pairs = 1 if engine == UNITS else max(1, min(config.qp_per_transfer, _most_pairs(self._machine)))
        pieces = _pieces(moves, config.chunk_bytes if config.enable_transfer_chunking else 0)

        def run(p: Step) -> None:
            p.enter("transfer")
            for i, (to, source, nbytes) in enumerate(pieces):
                p.copy(engine, peer, i % pairs, to, source, nbytes)
            for queue in range(min(pairs, len(pieces))):
                p.drain(engine, peer, queue)

        before, context.stream = context.stream, self._stream.number
        try:
            Launch("IOEngine transfer", run, warps=1).begin({} if tensor is None else {"local": tensor})
            return recorded()
        finally:
            context.stream = before

    def wait_all(self, statuses: Sequence[TransferStatus], timeout_ms: int = -1) -> StatusCode:
        """Blocks the host until all of some transfers are over. Returns the first code that is not SUCCESS, if there is
        one; IN_PROGRESS if it took more than so many milliseconds."""
        deadline = host_time() + timeout_ms * _PS_PER_MS
        for status in statuses:
            code = status.Wait()
            if code is not StatusCode.SUCCESS:
                return code
            if timeout_ms >= 0 and status.end_time() > deadline:
                return StatusCode.IN_PROGRESS
        return StatusCode.SUCCESS

    def pop_inbound_transfer_status(self, remote_key: str, transfer_uid: int) -> TransferStatus | None:
        """Returns a transfer of another engine that has reached this one's memory; None if there is none yet, which
        takes time to find out."""
        status = self._shared.inbound.get((self.key, remote_key, transfer_uid))
        if status is None or status.InProgress():
            return None
        return self._shared.inbound.pop((self.key, remote_key, transfer_uid))

    def create_session(self, local_mem: MemoryDesc, remote_mem: MemoryDesc) -> IOEngineSession | None:
        """Returns transfers between two memories; None where the engine does not know one of them."""
        if self._refusal(local_mem, remote_mem, []) is not None:
            return None
        return IOEngineSession(self, local_mem, remote_mem)


def _see_stream() -> None:
    """Lets the checker take what is on the current stream for over: to register memory takes longer than that."""
    context = runtime.current()
    if context.world.ordered:
        go.Saw(context.world.handle, context.rank, recorded().number)


def _use(end: Handle, parts: list[Any], writes: bool) -> Use:
    """Notes what a transfer does with parts of the own memory: one that writes to others reads them."""
    missing = "Wait() of the transfer's status, or wait_all(),"
    if writes:
        return note_use(end, ("IOEngine.write", missing), parts, [])
    return note_use(end, ("IOEngine.read", missing), [], parts)


def _most_pairs(machine: Any) -> int:
    return int(go.PrimEngines(machine.handle)[1])


def _pieces(moves: list[tuple[int, int, int]], most: int) -> list[tuple[int, int, int]]:
    """Cuts copies into pieces of so many bytes; 0 leaves them whole."""
    if most < 1:
        return moves
    return [
        (to + at, source + at, min(most, nbytes - at)) for to, source, nbytes in moves for at in range(0, nbytes, most)
    ]


class IOEngineSession:
    """Transfers between two memories.

    Args:
        engine: whose.
        local, remote: the memories.
    """

    def __init__(self, engine: IOEngine, local: MemoryDesc, remote: MemoryDesc) -> None:
        self._engine, self._local, self._remote = engine, local, remote

    def allocate_transfer_uid(self) -> int:
        """Returns a number for a transfer, which no other one has."""
        return self._engine.allocate_transfer_uid()

    def write(self, local_offset: int, remote_offset: int, size: int, transfer_uid: int) -> TransferStatus:
        """Writes bytes of the local memory to the remote one. The host goes on."""
        return self._engine.write(self._local, local_offset, self._remote, remote_offset, size, transfer_uid)

    def read(self, local_offset: int, remote_offset: int, size: int, transfer_uid: int) -> TransferStatus:
        """Reads bytes of the remote memory into the local one. The host goes on."""
        return self._engine.read(self._local, local_offset, self._remote, remote_offset, size, transfer_uid)

    def batch_write(
        self, local_offsets: Sequence[int], remote_offsets: Sequence[int], sizes: Sequence[int], transfer_uid: int
    ) -> TransferStatus:
        """Writes several runs of bytes in one transfer."""
        return self._engine.batch_write(self._local, local_offsets, self._remote, remote_offsets, sizes, transfer_uid)

    def batch_read(
        self, local_offsets: Sequence[int], remote_offsets: Sequence[int], sizes: Sequence[int], transfer_uid: int
    ) -> TransferStatus:
        """Reads several runs of bytes in one transfer."""
        return self._engine.batch_read(self._local, local_offsets, self._remote, remote_offsets, sizes, transfer_uid)

    def alive(self) -> bool:
        """Says that transfers may be made."""
        return True


def set_log_level(level: str) -> None:
    """Accepts a level: there is no log."""
