"""triton_dist.utils: groups and symmetric memory of a program, and operations on its streams."""

from __future__ import annotations

import datetime
import importlib
import os
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.frontends.triton._placeholders import placeholders
from torchemu.frontends.triton._program import current
from torchemu.frontends.triton_dist import _symmetric
from torchemu.frontends.triton_dist._symmetric import HostOperation, on_stream
from torchemu.runtime.rank_local import RankLocal


class _Torch:
    """The torch that programs have, whichever it is now."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module("torch"), name)


torch = _Torch()

_BARRIER, _SLEEP = HostOperation("nvshmem_barrier_all_on_stream"), HostOperation("sleep_async")
_PS_PER_MS = 1_000_000_000

_group: RankLocal[list[Any]] = RankLocal(list)


def initialize_distributed(seed: int | None = None, initialize_shmem: bool = True) -> Any:
    """Makes the process groups of a rank, and its symmetric memory.

    Args:
        seed: of all random numbers, on top of 3; None is the rank.
        initialize_shmem: not needed here.

    Returns:
        The group of all ranks.
    """
    rank, local = int(os.environ.get("RANK", 0)), int(os.environ.get("LOCAL_RANK", 0))
    world = int(os.environ.get("WORLD_SIZE", 1))
    torch.cuda.set_device(local)
    torch.distributed.init_process_group(
        backend="cpu:gloo,cuda:nccl", world_size=world, rank=rank, timeout=datetime.timedelta(seconds=1800)
    )
    group = torch.distributed.new_group(ranks=list(range(world)), backend="nccl")
    torch.distributed.barrier(group)
    init_seed(rank if seed is None else seed)
    _group.get().append(group)
    return group


def init_seed(seed: int = 0) -> None:
    """Seeds PyTorch, CUDA, NumPy and Python with 3 more than a number, and makes PyTorch print two digits."""
    torch.manual_seed(3 + seed)
    np.random.seed(3 + seed)
    random.seed(3 + seed)
    if (precision := getattr(torch, "set_printoptions", None)) is not None:  # a front end may not have it
        precision(precision=2)
    if (seeded := getattr(torch.cuda, "manual_seed_all", None)) is not None:
        seeded(3 + seed)
    if (deterministic := getattr(torch, "use_deterministic_algorithms", None)) is not None:
        deterministic(True, warn_only=True)


def get_triton_dist_world() -> Any:
    """The group that initialize_distributed has made; None before that."""
    return _group.get()[-1] if _group.get() else None


def finalize_distributed() -> None:
    """Ends the process groups."""
    _group.get().clear()
    torch.distributed.destroy_process_group()


# -- symmetric memory


def nvshmem_create_tensor(shape: Any, dtype: Any) -> Any:
    """Makes a tensor in symmetric memory. All ranks call it alike; their hosts wait for their devices and each other.

    Raises:
        MismatchError: another rank asks for something else.
    """
    torch.cuda.synchronize()
    made = _symmetric.allocate(shape, dtype)
    torch.cuda.synchronize()
    return made


def nvshmem_create_tensors(shape: Any, dtype: Any, rank: int, local_world_size: int) -> list[Any]:
    """Makes a tensor in symmetric memory, and returns those of all ranks of the node, by their local ranks."""
    own = nvshmem_create_tensor(shape, dtype)
    first = rank // local_world_size * local_world_size
    return [own if r == rank else _symmetric.peer(own, r) for r in range(first, first + local_world_size)]


def nvshmem_free_tensor_sync(tensor: Any) -> None:
    """Waits for the device, and gives the memory of a tensor back, which kernels are not to use any more."""
    torch.cuda.synchronize()
    _symmetric.free(tensor)


def nvshmem_barrier_all_on_stream(stream: Any = None) -> None:
    """Makes a stream wait until the streams of all ranks have come here, and what they have sent has landed. The host
    goes on."""
    with _current(stream):
        on_stream(_BARRIER, _symmetric.quiet_and_sync)


def _current(stream: Any) -> Any:
    return torch.cuda.stream(stream if stream is not None else torch.cuda.current_stream())


def sleep_async(duration_ms: float) -> None:
    """Keeps the current stream busy for so many milliseconds."""

    def sleep() -> None:
        current().call(go.PrimPass, int(duration_ms * _PS_PER_MS))

    on_stream(_SLEEP, sleep)


# -- printing


def dist_print(
    *args: Any, allowed_ranks: Sequence[int] | str = (0,), need_sync: bool = False, prefix: bool = False, **kwargs: Any
) -> None:
    """Prints on some ranks, one after another if these are to wait for each other."""
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    allowed = range(world) if isinstance(allowed_ranks, str) else allowed_ranks
    for turn in allowed:
        if need_sync:
            torch.distributed.barrier()
        if turn == rank:
            print(*([f"[rank:{rank}]"] if prefix else []), *args, **kwargs)


def CUDA_CHECK(err: Any) -> None:  # noqa: N802
    """Makes sure that a call has succeeded.

    Raises:
        RuntimeError: it has not.
    """
    code = err[0] if isinstance(err, tuple) else err
    if int(getattr(code, "value", code) or 0) != 0:
        raise RuntimeError(f"Cuda Error: {code}")


NVSHMEM_CHECK = CUDA_CHECK


# -- questions


def supports_p2p_native_atomic() -> bool:
    """True."""
    return True


def requires_p2p_native_atomic(fn: Any) -> Any:
    """The function."""
    return fn


def launch_cooperative_grid_options() -> dict[str, bool]:
    """The options of a launch whose programs all run at once."""
    return {"launch_cooperative_grid": True}


def is_nvshmem_multimem_supported() -> bool:
    """False: no topology has a switch that multiplies stores."""
    return False


def has_fullmesh_nvlink() -> bool:
    """True: all ranks of a node reach each other."""
    return True


def is_cuda() -> bool:
    """True."""
    return True


def is_hip() -> bool:
    """False."""
    return False


def get_device_property(device_id: int = 0) -> Any:
    """The properties of a device."""
    return torch.cuda.get_device_properties(device_id)


def get_numa_node_count_in_group(pg: Any = None) -> int:
    """1."""
    return 1


def generate_data(configs: Any) -> Any:
    """Yields lists of random tensors: of each shape, dtype, and a function or (scale, shift)."""
    while True:
        made = []
        for shape, dtype, (scale, shift) in configs:
            made.append((torch.rand(shape, device="cuda") * 2 - 1).mul(scale).add(shift).to(dtype))
        yield made


def synchronize() -> None:
    """Waits until all operations of the rank have ended."""
    runtime.current().synchronize()


_placeholder = placeholders("triton_dist.utils")


def __getattr__(name: str) -> Any:
    return torch.int64 if name == "NVSHMEM_SIGNAL_DTYPE" else _placeholder(name)
