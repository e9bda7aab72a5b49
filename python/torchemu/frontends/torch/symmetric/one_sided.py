"""One-sided operations that hosts put on their streams: puts, gets and signals, on memory of NVSHMEM's or NCCL's."""

from __future__ import annotations

from typing import Any

import torch

from torchemu import runtime
from torchemu.frontends.torch.symmetric import backends
from torchemu.frontends.torch.symmetric.memory import SymmetricMemory, backend_of, handle_of
from torchemu.frontends.torch.symmetric.order import settle
from torchemu.language import _windows
from torchemu.language._host_program import EQ, GE, HostProgram
from torchemu.language._launch import ranks_of
from torchemu.runtime import capture as captures
from torchemu.runtime.buffer import buffer_of

_WORD = 8


def place(function: str, what: str, tensor: torch.Tensor, backend: str = backends.NVSHMEM) -> int:
    """Returns where device programs find a tensor in symmetric memory.

    Args:
        function, what: is called, and the name of its argument, for errors.
        backend: that the memory has to be of.

    Raises:
        RuntimeError: it is not contiguous, of another backend, or has not met with that of the other ranks.
    """
    rank = runtime.current().rank
    where = f"symm_mem::{function} on rank {rank}: {what}"
    if not tensor.is_contiguous():
        raise RuntimeError(f"{where} must be contiguous")
    return address(where, tensor, backend)


def address(where: str, tensor: torch.Tensor, backend: str) -> int:
    """Returns where device programs find a tensor; see place.

    Args:
        where: the argument is, for errors.

    Raises:
        RuntimeError: as place does.
    """
    of = backend_of(tensor)
    if of is None:
        raise RuntimeError(f"{where} is no symmetric memory: allocate it with symm_mem.empty")
    if of != backend:
        raise RuntimeError(
            f"{where} is memory of the backend {of!r}: call symm_mem.set_backend({backend!r}) before symm_mem.empty"
        )
    settle()
    buffer = buffer_of(tensor)
    start = _windows.address_of(runtime.current(), buffer.memory)
    if not start:
        raise RuntimeError(f"{where} has not met with the other ranks' memory: call symm_mem.rendezvous first")
    return start + int(tensor.storage_offset()) * tensor.itemsize


def rank_of_peer(function: str, peer: int) -> int:
    """Returns the rank of the World that a peer is, a number among all ranks of the program.

    Raises:
        RuntimeError: there is none.
    """
    ranks = ranks_of(runtime.current())
    if not 0 <= peer < len(ranks):
        raise RuntimeError(f"symm_mem::{function}: peer must be smaller than world size: {peer}, of {len(ranks)}")
    return ranks[peer]


def on(function: str, at: int, rank: int) -> int:
    """Returns the same place as an address in the memory of a rank of the World.

    Raises:
        RuntimeError: that rank's memory has not met with it.
    """
    context = runtime.current()
    start = _windows.start_of(context.world, at)
    far = _windows.alike(context.world, start) or {}
    if rank not in far:
        raise RuntimeError(
            f"symm_mem::{function} on rank {context.rank}: the memory has not met with that of rank {rank}, only with "
            f"that of {sorted(far)}: call symm_mem.rendezvous with a group that has both"
        )
    return far[rank] + at - start


# Seen on H100s: where a tensor is a part of its memory, puts and gets are at the beginning of the peer's, but for puts
# with signals, which are at the same place.


def put(tensor: torch.Tensor, peer: int) -> None:
    """Writes a tensor to the beginning of a peer's memory: nvshmem_put."""
    _put("nvshmem_put", tensor, peer, backends.NVSHMEM)


def get(tensor: torch.Tensor, peer: int) -> None:
    """Reads a tensor from the beginning of a peer's memory: nvshmem_get."""
    _get("nvshmem_get", tensor, peer, backends.NVSHMEM)


def nccl_put(tensor: torch.Tensor, peer: int) -> None:
    """Writes a tensor to the beginning of a peer's memory."""
    _put("nccl_put", tensor, peer, backends.NCCL)


def nccl_get(tensor: torch.Tensor, peer: int) -> None:
    """Reads a tensor from the beginning of a peer's memory."""
    _get("nccl_get", tensor, peer, backends.NCCL)


def _put(function: str, tensor: torch.Tensor, peer: int, backend: str) -> None:
    rank = rank_of_peer(function, peer)
    at = place(function, "tensor", tensor, backend)
    far, nbytes = _beginning(function, at, rank), tensor.nbytes
    start(function, [tensor], lambda program: program.put(far, at, nbytes))


def _get(function: str, tensor: torch.Tensor, peer: int, backend: str) -> None:
    rank = rank_of_peer(function, peer)
    at = place(function, "tensor", tensor, backend)
    far, nbytes = _beginning(function, at, rank), tensor.nbytes
    start(function, [tensor], lambda program: program.get(at, far, nbytes))


def _beginning(function: str, at: int, rank: int) -> int:
    """Returns where the memory of a rank of the World begins that has met with that of an address."""
    return on(function, _windows.start_of(runtime.current().world, at), rank)


def put_with_signal(tensor: torch.Tensor, sigpad: torch.Tensor, signal: int, peer: int) -> None:
    """Writes a tensor to the same place in a peer's memory, and then a word: nvshmem_put_with_signal."""
    function = "nvshmem_put_with_signal"
    rank = rank_of_peer(function, peer)
    at, word = place(function, "tensor", tensor), _word(function, sigpad)
    far, signalled, nbytes = on(function, at, rank), on(function, word, rank), tensor.nbytes
    start(function, [tensor, sigpad], lambda program: program.put(far, at, nbytes, signalled, signal))


def wait_for_signal(sigpad: torch.Tensor, signal: int, peer: int) -> None:
    """Makes the stream wait until a word is equal to a value: nvshmem_wait_for_signal."""
    word = _word("nvshmem_wait_for_signal", sigpad)
    start("nvshmem_wait_for_signal", [sigpad], lambda program: program.wait_for(word, EQ, signal))


def nccl_put_with_signal(tensor: torch.Tensor, signal: int, peer: int) -> None:
    """Writes a tensor to the beginning of a peer's memory, and then the first word of the peer's signal pad."""
    function = "nccl_put_with_signal"
    rank = rank_of_peer(function, peer)
    at, word = place(function, "tensor", tensor, backends.NCCL), _pad(function, tensor)
    far, signalled, nbytes = _beginning(function, at, rank), on(function, word, rank), tensor.nbytes
    start(function, [tensor], lambda program: program.put(far, at, nbytes, signalled, signal))


def nccl_wait_for_signal(sigpad: torch.Tensor, signal: int) -> None:
    """Makes the stream wait until the first word of a tensor's signal pad is at least a value."""
    word = _pad("nccl_wait_for_signal", sigpad)
    start("nccl_wait_for_signal", [sigpad], lambda program: program.wait_for(word, GE, signal))


def put_signal(src: torch.Tensor, hdl: SymmetricMemory, peer: int) -> None:
    """Copies a tensor to a peer's symmetric memory, and signals that.

    Raises:
        ValueError: the backend is another one than NCCL's, which alone has it.
    """
    _check_nccl("put_signal")
    hdl.get_remote_tensor(peer, src.shape, src.dtype).copy_(src)
    hdl.signal_put(peer)


def wait_signal(hdl: SymmetricMemory, peer: int) -> None:
    """Makes the stream wait for the next signal of a peer's put_signal.

    Raises:
        ValueError: as put_signal.
    """
    _check_nccl("wait_signal")
    hdl.wait_for_put(peer)


def _check_nccl(function: str) -> None:
    if backends.chosen() != backends.NCCL:
        raise ValueError(f"{function}: unsupported backend: {backends.chosen()}")


def _word(function: str, sigpad: torch.Tensor) -> int:
    at = place(function, "sigpad", sigpad)
    if sigpad.nbytes < _WORD or at % _WORD:
        raise RuntimeError(
            f"symm_mem::{function} on rank {runtime.current().rank}: sigpad is the place of a word of {_WORD} bytes, "
            f"not of {sigpad.nbytes} bytes of {sigpad.dtype} from byte {sigpad.storage_offset() * sigpad.itemsize} on"
        )
    return at


def _pad(function: str, tensor: torch.Tensor) -> int:
    place(function, "tensor", tensor, backends.NCCL)
    handle = handle_of(tensor)
    return place(function, "its signal pad", handle.get_signal_pad(handle.rank), backends.NCCL)


def start(function: str, tensors: list[torch.Tensor], body: Any, ranks: tuple[int, ...] | None = None) -> None:
    """Puts what a call does on the running rank's stream.

    Args:
        ranks: those that take part; all of the program's without.
    """
    context = runtime.current()
    buffers = [buffer for t in tensors if (buffer := buffer_of(t)) is not None]
    captures.do(lambda: HostProgram(function, ranks or ranks_of(context), body, buffers).start())
