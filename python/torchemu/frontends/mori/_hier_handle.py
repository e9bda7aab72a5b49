"""mori.ccl.HierAllGather."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

from torchemu import runtime
from torchemu.frontends.mori import _environment, _state
from torchemu.frontends.mori._hier import Call, Paths, Shape, Words
from torchemu.frontends.mori._launch import Launch, Step
from torchemu.frontends.mori._schedules import PARTS, Gathering, Plan
from torchemu.frontends.mori._state import Team
from torchemu.frontends.mori._subgroups import InterNodeRingAllgather, IntraNodeSubGroupAllgatherSdma
from torchemu.frontends.mori._tensors import given, in_bytes, in_lanes, sized
from torchemu.frontends.triton_dist._streams import numbered
from torchemu.runtime import capture as captures

_MIB = 1 << 20
DEFAULT_BUFFER = 512 * _MIB
_LOCAL_SIZES = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE")


def ranks_of_a_node(npes: int, given: int | None) -> int:
    """Returns how many PEs a node has: as given, as the environment says, or as PEs lie on nodes.

    Raises:
        ValueError: it does not divide the number of PEs.
    """
    found = given
    if found is None:
        texts = [os.environ[name] for name in _LOCAL_SIZES if name in os.environ]
        found = int(texts[0]) if texts else sum(_state.near(pe) for pe in range(npes))
    if found < 1 or npes % found:
        raise ValueError(f"ranks_per_node {found} does not divide npes {npes}")
    return found


def _said(given: bool | None, name: str, default: bool) -> bool:
    """An option: as given, or else as the environment says."""
    return _environment.switch(name, default) if given is None else bool(given)


def _counted(given: int | None, name: str, default: int) -> int:
    return _environment.number(name, default) if given is None else given


class HierAllGather:
    """All-gather over nodes of several ranks: a ring between nodes, and copies among the ranks of a node.

    Args:
        my_pe, npes: this PE and how many there are.
        input_buffer_size, output_buffer_size: bytes of a shard and of a result at most; 512 MiB each.
        transit_buffer_size: instead of both: of a shard; a result has npes times as many.
        copy_output_to_user: the result is copied to the output where it does not come into being there.
        ranks_per_node: PEs of a node; by default as the environment says, or as they lie on hosts.
        inter_num_qp: queue pairs of the ring; 4.
        inter_num_blocks: accepted.
        fuse_barrier: small shards take three barriers of hosts, not four.
        slice_inter: shards cross between nodes, not blocks of a node.
        slice_fused: one launch runs the ring and the gathers; or else each block is gathered once the ring has brought
            it.
        slice_min_bytes: smaller shards go in parts, each gathered beside the ring of the next one; 8 MiB.
        slice_fuse_ib: accepted.
        slice_pipe_chunks: these parts; 2.
        slice_direct: the result comes into being in the outputs; by default where cards reach other nodes.
        standalone_fast: as MORI_HIER_FUSE_LOCAL says for this process, which counts if it is set.

    Where an option is None, the environment may say it: MORI_HIER_SLICE for slice_inter, MORI_HIER_SLICE_FUSED,
    MORI_HIER_SLICE_MIN_BYTES, MORI_HIER_SLICE_PIPE_CHUNKS, MORI_HIER_SLICE_DIRECT and MORI_HIER_FUSE_BARRIER.

    Attributes:
        my_pe, npes, ranks_per_node, num_nodes, node_id, local_rank: where the PE is.
        slice_inter, slice_fused, slice_min_bytes, slice_direct, slice_pipe_chunks, fuse_barrier: as above. All but
            slice_direct may be set between calls, alike on all PEs.
        pipe_band: shards below slice_min_bytes go in parts; or else their blocks cross whole.
        leader_only: false: every rank of a node has a rail.

    Raises:
        RuntimeError: MORI_ENABLE_SDMA is not set; shmem is not initialized; the heap is too small.
        ValueError: ranks_per_node does not divide npes; slice_direct without RDMA.
    """

    def __init__(
        self, my_pe: int, npes: int, input_buffer_size: int | None = None, output_buffer_size: int | None = None,
        transit_buffer_size: int | None = None, copy_output_to_user: bool = True, *, ranks_per_node: int | None = None,
        inter_num_qp: int | None = None, inter_num_blocks: int | None = None, fuse_barrier: bool | None = None,
        slice_inter: bool | None = None, slice_fused: bool | None = None, slice_min_bytes: int | None = None,
        slice_fuse_ib: bool | None = None, slice_pipe_chunks: int | None = None, slice_direct: bool | None = None,
        standalone_fast: bool | None = None,
    ) -> None:  # fmt: skip
        _environment.require_sdma(type(self).__name__)
        self.my_pe, self.npes = my_pe, npes
        self.ranks_per_node = ranks_of_a_node(npes, ranks_per_node)
        self.num_nodes = npes // self.ranks_per_node
        self.node_id, self.local_rank = divmod(my_pe, self.ranks_per_node)
        self._sizes = self._capacities(input_buffer_size, output_buffer_size, transit_buffer_size)
        self.slice_inter = _said(slice_inter, "MORI_HIER_SLICE", True)
        self.slice_fused = _said(slice_fused, "MORI_HIER_SLICE_FUSED", True)
        self.slice_min_bytes = _counted(slice_min_bytes, "MORI_HIER_SLICE_MIN_BYTES", 8 * _MIB)
        self.slice_pipe_chunks = _counted(slice_pipe_chunks, "MORI_HIER_SLICE_PIPE_CHUNKS", 2)
        self.fuse_barrier = _said(fuse_barrier, "MORI_HIER_FUSE_BARRIER", True)
        self.pipe_band, self.leader_only = True, False
        self._fused = _environment.switch("MORI_HIER_FUSE_LOCAL", standalone_fast is not False)
        self._fused_remote = _environment.switch("MORI_HIER_FUSE_REMOTE") and self.num_nodes == 2
        self.slice_direct = self._probe(slice_direct)
        self._plan = self._planned(4 if inter_num_qp is None else inter_num_qp)
        self._called = 0
        self._last_use_slice: str | None = None

    @functools.cached_property
    def _intra(self) -> IntraNodeSubGroupAllgatherSdma:
        """A gather inside the node, for programs that measure it by itself. All PEs ask for it in step."""
        first = self.node_id * self.ranks_per_node
        room = self._sizes[0] * self.ranks_per_node
        return IntraNodeSubGroupAllgatherSdma(
            self.my_pe, self.npes, room, self.ranks_per_node, self.local_rank, first, 1
        )

    @functools.cached_property
    def _inter(self) -> InterNodeRingAllgather:
        """A ring between nodes, for programs that measure it by itself. All PEs ask for it in step."""
        room, pairs = self._plan.ring.nbytes, self._plan.paths.pairs
        return InterNodeRingAllgather(
            self.my_pe, self.npes, room, self.num_nodes, self.node_id, self.local_rank, self.ranks_per_node, pairs
        )

    def _capacities(self, shard: int | None, result: int | None, transit: int | None) -> tuple[int, int]:
        """The bytes of a shard and of a result that there is room for."""
        if transit is not None:
            return transit, transit * self.npes
        return DEFAULT_BUFFER if shard is None else shard, DEFAULT_BUFFER if result is None else result

    def _probe(self, wanted: bool | None) -> bool:
        """Says whether results come into being in the outputs."""
        near = all(_state.near(pe) for pe in range(self.npes))
        if wanted is None and "MORI_HIER_SLICE_DIRECT" in os.environ:
            wanted = _environment.switch("MORI_HIER_SLICE_DIRECT") and not near
        if wanted and self.num_nodes > 1 and near:
            raise ValueError("slice_direct=True needs RDMA between nodes, and all PEs are on one node")
        return self.num_nodes > 1 and not near if wanted is None else bool(wanted) and self.num_nodes > 1

    def _planned(self, pairs: int) -> Plan:
        team = Team(type(self).__name__, tuple(range(self.npes)))
        context = runtime.current()
        others = [pe for pe in range(self.npes) if pe // self.ranks_per_node != self.node_id]
        near = all(_state.near(pe) for pe in others)
        shape = Shape(self.num_nodes, self.ranks_per_node, self.node_id, self.local_rank, near)
        assert team.ranks[self.my_pe] == context.rank
        ring = max(self._sizes[1], self.num_nodes * self._sizes[0]) if self.num_nodes > 1 else 0
        _state.take(ring, "InterNodeRingAllgather: ring ShmemMalloc failed", self)
        words = Words(team.window("words", 8 * Words.count(shape), data=False), shape)
        collection, transit = team.window("collection", ring), team.window("transit", self._sizes[1])
        paths = Paths(team, shape, pairs, _environment.channels())
        return Plan(team, shape, paths, words, team.window("ring", ring), collection, transit)

    def __call__(self, input: Any, output: Any, count: int, stream: Any = None) -> bool:  # noqa: A002
        """Gathers count elements of each rank into output, rank after rank, in the order of a stream: the current one,
        unless another is given. The host does not wait.

        Raises:
            RuntimeError: the message exceeds the buffers.
            ValueError: a tensor is too small, not contiguous, or in the host's memory; the bytes are no multiple of 4.
        """
        nbytes = sized("input", input, count, count)
        sized("output", output, count, count * self.npes)
        self._fits(nbytes)
        if nbytes:
            with numbered(stream):
                self._launch(input, output, nbytes)
        return True

    def _fits(self, nbytes: int) -> None:
        if nbytes % 4:
            raise ValueError(f"{nbytes} bytes of a rank are no multiple of 4: they move as lanes of 4 bytes")
        room = self._plan.ring.nbytes
        if self.num_nodes > 1 and nbytes * (self.num_nodes if self._path(nbytes) else self.npes) > room:
            raise RuntimeError(
                f"InterNodeRingAllgather: message exceeds ring buffer capacity ({nbytes} bytes a rank, {room} in all): "
                "make the handle with a larger input_buffer_size and output_buffer_size"
            )
        if not self._comes_into_output(nbytes) and nbytes * self.npes > self._plan.transit.nbytes:
            raise RuntimeError(
                f"IntraNodeSubGroupAllgatherSdma: message exceeds out capacity ({nbytes * self.npes} bytes, of "
                f"{self._plan.transit.nbytes}): make the handle with a larger output_buffer_size"
            )

    def _comes_into_output(self, nbytes: int) -> bool:
        return self.slice_direct and self._path(nbytes) == "slice"

    def _launch(self, source: Any, output: Any, nbytes: int, splits: Sequence[tuple[int, int]] = ()) -> None:
        """Puts a call on the current stream, and into the graph that is being captured, if there is one."""
        again = functools.partial(self._launch_at_once, source, output, nbytes, splits)
        with captures.noted(again, (output,)):
            again()
        if _environment.switch("MORI_HIER_DEBUG_SYNC"):
            runtime.current().synchronize()

    def _launch_at_once(self, source: Any, output: Any, nbytes: int, splits: Sequence[tuple[int, int]]) -> None:
        self._called += 1
        self._last_use_slice = self._path(nbytes)
        self._plan.chunks = max(1, min(self.slice_pipe_chunks, PARTS - 1))
        self._plan.host_barriers = 3 if self.fuse_barrier else 4
        call = Call(self._called, nbytes, splits=splits)
        self._plan.team.join(self.my_pe, call)
        gathering = Gathering(self._plan, call, bool(splits) or self._comes_into_output(nbytes))
        body, blocks = (gathering.param_contiguous, 1) if splits else self._body(gathering, nbytes)
        launch = Launch(type(self).__name__, body, blocks)
        at = launch.begin({"input": source, "output": output})
        call.source, call.target = at["input"], at["output"]

    def _path(self, nbytes: int) -> str | None:
        """Returns the path of a call of so many bytes: "slice" or "pipe"; None for that of whole blocks."""
        if not self.slice_inter or self.num_nodes == 1:
            return None
        small = nbytes < self.slice_min_bytes
        return ("pipe" if self.pipe_band else None) if small else "slice"

    def _body(self, gathering: Gathering, nbytes: int) -> tuple[Callable[[Step], None], int]:
        """The program of a call of so many bytes, and on how many blocks it runs."""
        if self.num_nodes == 1:
            return gathering.single_node, 1
        if self._last_use_slice is None:
            return gathering.unsliced, 1
        if self._last_use_slice == "pipe":
            return gathering.piped, 2
        if not self.slice_fused:
            return gathering.by_block, 2
        if self._fused_remote:
            return gathering.fused_remote, 2
        return (gathering.fused, 2) if self._fused else (gathering.sliced, 1)

    def supports_param_contiguous_output(self) -> bool:
        """Says whether enqueue_param_contiguous works: over several nodes, with results in the outputs."""
        return self.num_nodes > 1 and self.slice_direct

    def enqueue_param_contiguous(
        self,
        input: Any,  # noqa: A002
        output: Any,
        count: int,
        split_sizes: Any,
        split_offsets: Any,
        stream: Any = None,
    ) -> bool:
        """Gathers as a call does, into another order: the parts of a split lie together. One of E elements from O on
        of rank r lands at O · npes + r · E. It returns false where that is not possible, or the bytes of a
        split are no multiple of 4.

        Raises:
            ValueError: the lists differ in length; a split is not in the shard.
        """
        nbytes, splits = in_bytes(input, output, count, self.npes, split_sizes, split_offsets)
        if not self.supports_param_contiguous_output() or nbytes % 4 or not in_lanes(splits):
            return False
        self._fits(nbytes)
        if nbytes:
            with numbered(stream):
                self._launch(input, output, nbytes, splits or [(0, 0)])
        return True

    def get_output_transit_buffer(self, dtype: Any = None, device: Any = None) -> Any:
        """Returns the memory in which results come into being, as elements of a type; bytes by default.

        Raises:
            NotImplementedError: there are several nodes.
        """
        if self.num_nodes > 1:
            raise NotImplementedError("get_output_transit_buffer is there for a single node")
        return self._plan.transit.tensor(dtype)

    def all_gather(self, tensor_list: Sequence[Any], tensor: Any, stream: Any = None) -> bool:
        """Gathers each rank's tensor into the entry of its number. The host waits.

        Raises:
            ValueError: there are not npes entries, or one is not as large as the tensor.
        """
        if len(tensor_list) != self.npes:
            raise ValueError(f"tensor_list has {len(tensor_list)} entries; there are {self.npes} PEs")
        count = given("tensor", tensor).numel()
        flat = tensor.new_empty((count * self.npes,))
        done = self(tensor, flat, count, stream)
        runtime.current().synchronize()
        for i, entry in enumerate(tensor_list):
            entry.copy_(flat[i * count : (i + 1) * count].view(entry.shape))
        return done
