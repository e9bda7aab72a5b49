"""mori.shmem: symmetric memory and barriers, from a host."""

from __future__ import annotations

import importlib
import types
from typing import Any

from torchemu import runtime
from torchemu.c10d.groups import find_by_name
from torchemu.frontends.mori import _memory, _state
from torchemu.runtime.buffer import chosen

MORI_SHMEM_INIT_WITH_UNIQUEID = 1
MORI_SHMEM_INIT_WITH_MPI_COMM = 0

_ID_BYTES = 128


def shmem_torch_process_group_init(group_name: str) -> int:
    """Makes the ranks of a process group PEs, by the name under which the program has registered it.

    Raises:
        RuntimeError: there is no process group of this name.
    """
    _state.initialize(_group_named(group_name))
    return 0


def _group_named(name: str) -> Any:
    """The process group of a name, of whichever torch the program has."""
    if chosen().kind.__module__.partition(".")[0] != "torch":
        return find_by_name(name)
    c10d: Any = importlib.import_module("torch._C._distributed_c10d")
    distributed: Any = importlib.import_module("torch.distributed")
    return types.SimpleNamespace(ranks=distributed.get_process_group_ranks(c10d._resolve_process_group(name)))


def shmem_get_unique_id() -> bytes:
    """Returns 128 bytes that PEs give each other before shmem_init_attr: nothing that matters here."""
    return bytes(_ID_BYTES)


def shmem_init_attr(flags: int, rank: int, nranks: int, unique_id: bytes) -> int:
    """Makes all ranks PEs, without torch.distributed.

    Raises:
        ValueError: the flags are not MORI_SHMEM_INIT_WITH_UNIQUEID; the rank or the number of ranks is another; the
            identity is not one of shmem_get_unique_id.
    """
    if flags != MORI_SHMEM_INIT_WITH_UNIQUEID:
        raise ValueError(f"shmem_init_attr with flags {flags}: there is MORI_SHMEM_INIT_WITH_UNIQUEID")
    if len(unique_id) != _ID_BYTES:
        raise ValueError(f"a unique id has {_ID_BYTES} bytes, not {len(unique_id)}")
    _state.initialize()
    if (rank, nranks) != (_state.my_pe(), len(_state.ranks())):
        found = _state.my_pe(), len(_state.ranks())
        _state.finalize()
        raise ValueError(f"rank {rank} of {nranks}: this is rank {found[0]} of {found[1]}")
    return 0


def shmem_finalize() -> int:
    """Ends the use of symmetric memory."""
    runtime.current().synchronize()
    _state.finalize()
    return 0


def shmem_module_init(module: Any) -> int:
    """Does nothing: kernels know the heap."""
    return 0


def shmem_mype() -> int:
    """Returns the rank's number among the PEs."""
    return _state.my_pe()


def shmem_npes() -> int:
    """Returns how many PEs there are."""
    return len(_state.ranks())


def shmem_num_qp_per_pe() -> int:
    """Returns how many queue pairs there are to a PE."""
    return 4


shmem_free = _memory.free
shmem_barrier_all = _memory.barrier_all
shmem_buffer_register = _memory.register
shmem_buffer_deregister = _memory.deregister
shmem_ptr_p2p = _memory.peer_address
mori_shmem_create_tensor = _memory.create_tensor
symm_mori_shmem_tensor = _memory.of_peer
mori_shmem_free_tensor = _memory.free_tensor


def shmem_malloc(size: int) -> int:
    """Takes memory of the heap, on all PEs in step, and returns its address.

    Raises:
        MismatchError: another PE asks for something else.
        RuntimeError: there is not as much.
        ValueError: nothing is asked for.
    """
    return _memory.allocate(size)


def shmem_malloc_align(alignment: int, size: int) -> int:
    """Takes memory of the heap that begins at a multiple of a power of two, on all PEs in step.

    Raises:
        MismatchError, RuntimeError, ValueError: as shmem_malloc.
    """
    return _memory.allocate(size, alignment)


def shmem_barrier_on_stream(stream: Any = None) -> None:
    """Makes a stream wait for those of all PEs: a stream, its number, or None for the current one."""
    _memory.barrier_on_stream(stream)
