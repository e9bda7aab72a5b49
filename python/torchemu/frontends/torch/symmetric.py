"""Symmetric memory of the installed PyTorch: tensors of a group's ranks that each of them reads and writes.

Ranks are in one process, so a peer's buffer is the peer's memory under the name of the own device. Operations on it are
computed where they are issued, and barriers and signals order them: they wait for their peers' hosts, too. They take
the time of messages; what operations do in a peer's buffer is charged as if it was in their own memory.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import torch
import torch.distributed as dist
from torch.distributed import _symmetric_memory as symmetric
from torch.distributed import distributed_c10d as c10d

from torchemu import runtime
from torchemu.bridge.calls import Call
from torchemu.frontends.torch.device import deferral, places
from torchemu.frontends.torch.session import Session, current
from torchemu.runtime import footprints
from torchemu.runtime.rank_local import RankLocal, RankTable

if TYPE_CHECKING:
    from torchemu.frontends.torch.groups import AhbmGroup

_SIGNALS = 1 << 20
"""The tag of the signals of channel 0."""

_counts: RankLocal[Counter[object]] = RankLocal(Counter)  # rendezvous so far, by the groups' memberships

_allocated: RankLocal[dict[int, torch.Tensor]] = RankLocal(dict)  # what empty has made, by its address


class SymmetricMemory:
    """One rank's view of a buffer that each rank of a group has.

    Attributes:
        rank: the group rank.
        world_size: how many ranks the group has.
        buffer_size: bytes of a buffer.
        buffer_ptrs, signal_pad_ptrs: addresses, by rank.
    """

    signal_pad_size = 9216
    multicast_ptr = 0
    offset = 0

    def __init__(self, group: AhbmGroup, buffers: Sequence[torch.Tensor], pads: Sequence[torch.Tensor]) -> None:
        self._group = group
        self.rank, self.world_size = group.rank(), group.size()
        where = places.of(buffers[self.rank])
        assert where is not None
        self._buffers = [_bytes(t) if r == self.rank else _shown(t, where) for r, t in enumerate(buffers)]
        self._pads = [t if r == self.rank else _shown(t, where) for r, t in enumerate(pads)]
        self.buffer_size = int(self._buffers[self.rank].nbytes)
        self.buffer_ptrs = [t.data_ptr() for t in self._buffers]
        self.signal_pad_ptrs = [t.data_ptr() for t in self._pads]
        self.device = where.device

    @staticmethod
    def empty_strided_p2p(
        size: Sequence[int],
        stride: Sequence[int],
        dtype: torch.dtype,
        device: torch.device,
        group_name: str | None = None,
        alloc_id: int | None = None,
    ) -> torch.Tensor:
        """Allocates memory for a rendezvous.

        Raises:
            RuntimeError: on the host, or in a run without data.
        """
        if device.type not in places.ACCELERATORS:
            raise RuntimeError(f"symmetric memory is on devices, not on {device}")
        if not current().data:
            raise RuntimeError("symmetric memory: a run without data (--no-data) has no memory that ranks share")
        made = torch.empty_strided(size, stride, dtype=dtype, device=device)
        if made.nbytes:
            made = _staying(made)
            _allocated.get()[made.data_ptr()] = made
        return made

    @staticmethod
    def rendezvous(tensor: torch.Tensor, group_name: str | None = None) -> SymmetricMemory:
        """Gives each rank of a group access to the tensors of all. All call it, in the same order.

        Raises:
            RuntimeError: the tensor is not of symmetric memory, or another size than another rank's.
        """
        if tensor.numel() and tensor.data_ptr() not in _allocated.get():
            raise RuntimeError("rendezvous: the tensor was not allocated by torch.distributed._symmetric_memory.empty")
        footprints.hide()
        group = _group("0" if group_name is None else group_name)
        pad = torch.zeros(SymmetricMemory.signal_pad_size, dtype=torch.uint8, device=tensor.device)
        context, counts, key = runtime.current(), _counts.get(), group.membership.key
        counts[key] += 1
        kept = context.own if context.tasks is None else context.tasks.shared
        met = kept.setdefault((SymmetricMemory, key, counts[key]), {})
        met[group.rank()] = tensor, pad
        _arrive(group)
        sizes = [met[rank][0].nbytes for rank in range(group.size())]
        for rank, size in enumerate(sizes):
            if size != tensor.nbytes:
                raise RuntimeError(
                    f"rendezvous: rank {group.rank()} has a tensor of {tensor.nbytes} bytes, and rank {rank} one of "
                    f"{size}; all are to have the same"
                )
        return SymmetricMemory(group, *zip(*(met[rank] for rank in range(group.size())), strict=True))

    @staticmethod
    def set_group_info(group_name: str, rank: int, world_size: int, store: Any) -> None:
        """Means nothing: groups are known."""

    @staticmethod
    def has_multicast_support(device_type: Any, device_idx: int) -> bool:
        """Says that devices have no multicast."""
        return False

    @staticmethod
    def set_backend(name: str) -> None:
        """Means nothing: there is one."""

    @staticmethod
    def get_backend(device: Any) -> str:
        """Returns the name of the backend that programs expect."""
        return "CUDA"

    def get_buffer(
        self, rank: int, sizes: Sequence[int], dtype: torch.dtype, storage_offset: int | None = 0
    ) -> torch.Tensor:
        """Returns a tensor on a rank's buffer, from so many elements on.

        Raises:
            RuntimeError: there is no such rank, or the buffer is too small.
        """
        return self._part(self._buffers, rank, sizes, dtype, storage_offset or 0)

    def get_remote_tensor(self, peer: int, sizes: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Returns a tensor on a rank's buffer."""
        return self.get_buffer(peer, sizes, dtype)

    def get_signal_pad(
        self, rank: int, sizes: Sequence[int] = (), dtype: torch.dtype | None = None, storage_offset: int | None = 0
    ) -> torch.Tensor:
        """Returns a tensor on a rank's signal pad, all of it without sizes; of 32-bit integers without a dtype."""
        dtype = torch.uint32 if dtype is None else dtype
        sizes = sizes or (self.signal_pad_size // dtype.itemsize,)
        return self._part(self._pads, rank, sizes, dtype, storage_offset or 0)

    def _part(
        self, parts: Sequence[torch.Tensor], rank: int, sizes: Sequence[int], dtype: torch.dtype, first: int
    ) -> torch.Tensor:
        if not 0 <= rank < self.world_size:
            raise RuntimeError(f"symmetric memory: there is no rank {rank} in a group of {self.world_size}")
        count, has = torch.Size(sizes).numel(), parts[rank].nbytes // dtype.itemsize
        if first < 0 or first + count > has:
            raise RuntimeError(
                f"symmetric memory: {count} elements of {dtype} from {first} on are more than the {has} of the buffer"
            )
        start = first * dtype.itemsize
        return parts[rank][start : start + count * dtype.itemsize].view(dtype).view(sizes)

    def barrier(self, channel: int = 0, timeout_ms: int = 0) -> None:
        """Ends, on the current stream, after it has begun for all ranks."""
        _arrive(self._group)

    def put_signal(self, dst_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Sends a rank a signal, after what is on the current stream."""
        _catch_up()
        self._group.send([self._token()], dst_rank, _SIGNALS + channel).block_current_stream()

    def wait_signal(self, src_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Lets the current stream wait for a rank's signal."""
        _catch_up()
        self._group.recv([self._token()], src_rank, _SIGNALS + channel).block_current_stream()

    def _token(self) -> torch.Tensor:
        return torch.zeros(1, dtype=torch.uint8, device=self.device)


def _group(name: str) -> AhbmGroup:
    found: Any = c10d._resolve_process_group(name)
    return found


def _arrive(group: AhbmGroup) -> None:
    """A barrier on the current stream, which waits for all hosts."""
    _catch_up()
    token = [torch.zeros(1, dtype=torch.uint8, device="cuda")]
    group._issue(Call.of("barrier", "all_reduce", "max"), token, None, []).block_current_stream()


def _catch_up() -> None:
    """Computes what the rank has put off: peers look at its memory next."""
    if deferral.current().works:
        deferral.current().catch_up()


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.flatten().view(torch.uint8)


def _shown(tensor: torch.Tensor, where: places.Place) -> torch.Tensor:
    """Returns the bytes of a peer's tensor under the name of another device."""
    if not tensor.nbytes:
        return torch.empty(0, dtype=torch.uint8, device=where.device)
    return _lent(tensor, tensor.nbytes, where)


def _staying(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a tensor in the memory of another, which PyTorch refuses to resize: peers will have its address."""
    where = places.of(tensor)
    assert where is not None
    memory = _lent(tensor, tensor.untyped_storage().nbytes(), where)
    memory.untyped_storage()._shared = True
    return memory.view(tensor.dtype).as_strided(tensor.size(), tensor.stride())


def _lent(tensor: torch.Tensor, nbytes: int, where: places.Place) -> torch.Tensor:
    """Returns so many bytes of a tensor's memory, as a tensor on another device."""
    memory: Any = (ctypes.c_uint8 * nbytes).from_address(tensor.data_ptr())
    memory.of = tensor
    return places.name(torch.frombuffer(memory, dtype=torch.uint8), where)


# The operations symm_mem::

_OPS = {op.lower(): getattr(dist.ReduceOp, op) for op in ("SUM", "AVG", "MAX", "MIN")}


def _all_reduce(tensor: torch.Tensor, reduce_op: str, group_name: str) -> torch.Tensor:
    if reduce_op not in _OPS:
        raise RuntimeError(f"symm_mem: reduce_op {reduce_op!r}, which is none of {', '.join(_OPS)}")
    dist.all_reduce(tensor, op=_OPS[reduce_op], group=_group(group_name))
    return tensor


def _one_shot(tensor: torch.Tensor, reduce_op: str, group_name: str) -> torch.Tensor:
    return _all_reduce(tensor.clone(), reduce_op, group_name)


def _one_shot_out(tensor: torch.Tensor, reduce_op: str, group_name: str, out: torch.Tensor) -> torch.Tensor:
    return _all_reduce(out.copy_(tensor), reduce_op, group_name)


def _multicast(name: str) -> Any:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise RuntimeError(f"symm_mem::{name}: simulated devices have no multicast (has_multicast_support says so)")

    return refuse


_KERNELS = {
    "one_shot_all_reduce": _one_shot,
    "one_shot_all_reduce_out": _one_shot_out,
    "two_shot_all_reduce_": _all_reduce,
    "fused_all_gather_matmul": lambda a, bs, dim, group, return_A=True: symmetric._fused_all_gather_matmul_fallback(  # noqa: N803
        a, bs, dim, group, return_A=return_A
    ),
    "fused_matmul_reduce_scatter": symmetric._fused_matmul_reduce_scatter_fallback,
    **{name: _multicast(name) for name in ("multimem_all_reduce_", "multimem_one_shot_all_reduce")},
}


def install(run: Session) -> None:
    """Gives ranks symmetric memory, until the run ends."""
    run.replace(symmetric, "_SymmetricMemory", SymmetricMemory)
    run.replace(torch._C._distributed_c10d, "_SymmetricMemory", SymmetricMemory)
    for name in ("_group_name_to_workspace_tensor", "_backend_streams", "_symm_mem_pools"):
        run.replace(symmetric, name, RankTable())
    run.replace(symmetric, "_should_use_implicit_mempool", lambda: False)
    if not _library:
        _library.append(torch.library.Library("symm_mem", "IMPL"))
        for name, kernel in _KERNELS.items():
            _library[0].impl(name, kernel, "CPU")


_library: list[Any] = []  # PyTorch forgets kernels whose library is gone
