"""mori.ccl.HostProxyHierAllGather: a hierarchical all-gather whose hosts post what crosses between two nodes."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torchemu import runtime
from torchemu.bridge.handles import Handle
from torchemu.frontends.mori import _environment, _state
from torchemu.frontends.mori._hier_handle import ranks_of_a_node
from torchemu.frontends.mori._io import IOEngine, IOEngineSession
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
from torchemu.frontends.mori._launch import Launch, Step
from torchemu.frontends.mori._state import Team
from torchemu.frontends.mori._subgroups import IntraNodeSubGroupAllgatherSdma
from torchemu.frontends.mori._tensors import sized
from torchemu.frontends.mori._unwaited import recorded
from torchemu.frontends.triton_dist._streams import numbered
from torchemu.runtime.buffer import chosen

_TIMEOUT_MS = 60_000


@dataclass
class ProxyCall:
    """A call that is under way.

    Attributes:
        output: the result's tensor.
        numel: elements of a shard.
        nbytes: of a shard.
        stream: on which it goes; None for the current one.
        slot: of the memory that it comes into.
        status: of the transfer to the other node; None if there is none.
    """

    output: Any
    numel: int
    nbytes: int
    stream: Any
    slot: int
    status: TransferStatus | None = None


class HostProxyHierAllGather:
    """All-gather over one or two nodes: the host writes shards to the other node's rank of the same number, by RDMA,
    while they are gathered inside the node, and then what has arrived is gathered.

    Args:
        my_pe, npes: this PE and how many there are.
        ranks_per_node: PEs of a node; by default as the environment says, or as they lie on hosts.
        output_buffer_size: bytes of a result at most.
        device: accepted.
        qp_per_transfer, chunk_bytes: of transfers; 4 and 64 KiB.

    MORI_HOSTPROXY_ASYNC_RING says how many calls may be under way at a time, 2 by default: each has memory of its own
    to come into. With 1 a second call overwrites what the first one has yet to gather. MORI_HOSTPROXY_SDMA_INTRA
    gathers inside the node by SDMA, not by the default collective.

    Attributes:
        my_pe, npes, ranks_per_node, num_nodes, node_id, local_rank: where the PE is.

    Raises:
        NotImplementedError: there are more than two nodes.
        RuntimeError: shmem is not initialized; the heap is too small.
        ValueError: ranks_per_node does not divide npes.
    """

    def __init__(
        self, my_pe: int, npes: int, ranks_per_node: int | None = None, output_buffer_size: int = 512 << 20,
        device: Any = None, *, qp_per_transfer: int = 4, chunk_bytes: int = 64 << 10,
    ) -> None:  # fmt: skip
        self.my_pe, self.npes = my_pe, npes
        self.ranks_per_node = ranks_of_a_node(npes, ranks_per_node)
        self.num_nodes = npes // self.ranks_per_node
        self.node_id, self.local_rank = divmod(my_pe, self.ranks_per_node)
        if self.num_nodes > 2:
            raise NotImplementedError(f"HostProxyHierAllGather is for one node or two, not for {self.num_nodes}")
        self._ring = _environment.number("MORI_HOSTPROXY_ASYNC_RING", 2, least=1)
        self._most = output_buffer_size // npes
        self._calls = itertools.count()
        self._node = list(range(self.node_id * self.ranks_per_node, (self.node_id + 1) * self.ranks_per_node))
        self._inside = self._gather_inside(output_buffer_size)
        self._released: dict[int, Handle] = {}
        if self.num_nodes == 2:
            self._connect(RdmaBackendConfig(qp_per_transfer, enable_transfer_chunking=True, chunk_bytes=chunk_bytes))

    def _gather_inside(self, room: int) -> Callable[[Any, Any, int], Any]:
        """Returns what gathers so many elements of each rank of the node, on the current stream."""
        if _environment.switch("MORI_HOSTPROXY_SDMA_INTRA"):
            return IntraNodeSubGroupAllgatherSdma(
                self.my_pe, self.npes, room, self.ranks_per_node, self.local_rank, self._node[0], 1
            )
        real = chosen().kind.__module__.partition(".")[0] == "torch"
        distributed: Any = importlib.import_module("torch.distributed" if real else "torchemu.distributed")
        own = None
        for node in range(self.num_nodes):
            members = range(node * self.ranks_per_node, (node + 1) * self.ranks_per_node)
            made = distributed.new_group([_state.ranks()[pe] for pe in members])
            own = made if node == self.node_id else own
        return lambda shard, whole, count: distributed.all_gather_into_tensor(whole, shard, group=own)

    def _connect(self, config: RdmaBackendConfig) -> None:
        """Makes the memory that shards come from and into, and the way to the rank of the other node."""
        _state.take(2 * self._ring * self._most, "HostProxyHierAllGather: ShmemMalloc failed", self)
        self._team = Team(type(self).__name__, tuple(range(self.npes)))
        self._partner = (self.my_pe + self.ranks_per_node) % self.npes
        self._stage = self._team.window("stage", self._ring * self._most)
        self._landing = self._team.window("landing", self._ring * self._most)
        self._engine = IOEngine(f"host proxy of PE {self.my_pe}", IOEngineConfig())
        self._engine.create_backend(BackendType.RDMA, config)
        there = EngineDesc(f"host proxy of PE {self._partner}", "", 0, self._team.ranks[self._partner])
        self._engine.register_remote_engine(there)
        self._staged, self._landed = self._stage.tensor(), self._landing.tensor()
        local, place = self._engine.register_torch_tensor(self._staged), self._landing.at(self._partner)
        remote = MemoryDesc(there.key, 0, 0, place, self._landing.nbytes, MemoryLocationType.GPU, place)
        self._session = IOEngineSession(self._engine, local, remote)

    def __call__(self, input: Any, output: Any, numel: int, stream: Any = None) -> bool:  # noqa: A002
        """Gathers numel elements of each rank into output. The host waits for what crosses between nodes.

        Raises:
            RuntimeError: the message exceeds the buffers; a transfer has failed.
            ValueError: a tensor is too small, not contiguous, or in the host's memory.
        """
        return self._complete(self.call_async(input, output, numel, stream))

    def call_async(self, input: Any, output: Any, numel: int, stream: Any = None) -> ProxyCall:  # noqa: A002
        """Begins a call, of which _complete is the end.

        Raises:
            RuntimeError: the message exceeds the buffers.
            ValueError: a tensor is too small, not contiguous, or in the host's memory.
        """
        nbytes = sized("input", input, numel, numel)
        sized("output", output, numel, numel * self.npes)
        if nbytes > self._most:
            raise RuntimeError(
                f"HostProxyHierAllGather: message exceeds out capacity ({nbytes * self.npes} bytes, of "
                f"{self._most * self.npes}): make the handle with a larger output_buffer_size"
            )
        call = ProxyCall(output, numel, nbytes, stream, next(self._calls) % self._ring)
        if nbytes:
            with numbered(stream):
                if self.num_nodes == 2:
                    call.status = self._send(input, call)
                self._inside(input.reshape(-1)[:numel], self._block(call, self.node_id), numel)
        return call

    def _send(self, shard: Any, call: ProxyCall) -> TransferStatus:
        """Stages a shard, and writes it to the other node once it is there."""
        released = self._released.pop(call.slot, None)
        if released is not None:
            runtime.current().wait(released.number)
        start = call.slot * self._most
        to = self._stage.at(self.my_pe, start)

        def stage(p: Step) -> None:
            p.enter("stage")
            p.copy_locally(to, source["input"], call.nbytes)

        source = Launch("HostProxyHierAllGather stage", stage).begin({"input": shard})
        runtime.current().wait(recorded().number)
        return self._session.write(start, start, call.nbytes, self._engine.allocate_transfer_uid())

    def _block(self, call: ProxyCall, node: int) -> Any:
        """A node's block of the result."""
        each = call.numel * self.ranks_per_node
        return call.output.reshape(-1)[node * each : (node + 1) * each]

    def _complete(self, handle: ProxyCall) -> bool:
        """Ends a call: the host waits for what crosses, and it is gathered on the call's stream.

        Raises:
            RuntimeError: a transfer has failed.
        """
        if handle.status is None:
            return True
        code = self._engine.wait_all([handle.status], _TIMEOUT_MS)
        if code is not StatusCode.SUCCESS:
            raise RuntimeError(f"HostProxyHierAllGather: the write to the other node is {code.name}")
        with numbered(handle.stream):
            self._meet("landed")
            runtime.current().wait(recorded().number)
            start, other = handle.slot * self._most, 1 - self.node_id
            kind = handle.output.dtype
            shard = self._landed[start : start + handle.nbytes].view(kind)
            self._inside(shard, self._block(handle, other), handle.numel)
            self._meet("gathered")
            self._released[handle.slot] = recorded()
        return True

    def _meet(self, name: str) -> None:
        """Puts a barrier with the rank of the other node on the current stream."""
        pair = tuple(sorted((self.my_pe, self._partner)))
        barrier = self._team.barrier(name, pair)

        def meet(p: Step) -> None:
            p.enter(f"barrier of the pair, {name}")
            p.meet(barrier, 0)

        Launch("HostProxyHierAllGather barrier", meet).begin({})
