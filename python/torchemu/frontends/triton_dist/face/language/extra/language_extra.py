"""Functions of threads: their numbers, words that they look at, and what they exchange."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchemu.frontends.triton import _access, _shmem, _threads
from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._conversions import cast
from torchemu.frontends.triton._memory import loaded
from torchemu.frontends.triton._placeholders import placeholders
from torchemu.frontends.triton._program import current
from torchemu.frontends.triton._shmem import pointer
from torchemu.frontends.triton._threads import (
    atomic_add,
    atomic_cas,
    fence,
    globaltimer,
    laneid,
    ld,
    ld_acquire,
    ntid,
    num_threads,
    num_warps,
    smid,
    st,
    threads_per_warp,
    tid,
    warp_id,
)
from torchemu.frontends.triton._values import plain, tensor, truth, value_of

__all__ = [
    "arrive_inc", "atomic_add", "atomic_add_per_warp", "atomic_cas", "fence", "globaltimer", "laneid", "ld",
    "ld_acquire", "load_v2_b64", "load_v4_u32", "membar", "ntid", "num_threads", "num_warps", "pack", "pack_b32_v2",
    "red_release", "smid", "st", "st_v2_b64", "st_v2_u32", "st_v4_u32", "threads_per_warp", "tid", "unpack", "wait_eq",
    "warp_id",
]  # fmt: skip

_WARP = 32


def __syncthreads() -> None:
    """A barrier of the block's threads."""
    _threads.syncthreads()


def __syncwarp() -> None:
    """A barrier of the warp's threads."""


def membar(scope: Any = "gl") -> None:
    """Makes what the thread has stored before land before what it stores after, unless that is for its block only."""
    _threads.fence(None, scope)


# -- several words at once


def _loaded(ptr: Any, n: int, kind: t.dtype, what: str) -> tuple[tensor, ...]:
    """Words that each thread loads at once: no store can come between them."""
    base = pointer(cast(ptr, t.pointer_type(kind)), "ptr")
    every = base.data if not base.lanes else base.data[:, None]
    mask = tensor(current().active()[:, None], t.int1) if base.lanes else None
    data = current().data_words
    flagged = tuple(i for i in range(n) if i not in data)
    found: dict[int, Any] = {}
    bare = f"{what} (no flag of it is compared)"
    for numbers, look, name in ((flagged, _access.FLAGGED, what), (data, _access.PLAIN, bare)):
        if numbers:
            words = tensor(every + np.array(numbers, np.int64) * kind.itemsize, base.dtype)
            values = loaded(words, mask, None, name, look).data
            found |= {number: values[..., i] for i, number in enumerate(numbers)}
    return tuple(tensor(found[i], kind, base.lanes) for i in range(n))


def load_v4_u32(ptr: Any) -> tuple[tensor, ...]:
    """Four words, as they are now: each thread's."""
    return _loaded(ptr, 4, t.uint32, "load_v4_u32")


def load_v2_u32(ptr: Any) -> tuple[tensor, ...]:
    """Two words, as they are now: each thread's."""
    return _loaded(ptr, 2, t.uint32, "load_v2_u32")


def load_v2_b64(ptr: Any) -> tuple[tensor, ...]:
    """Two words of 64 bits, as they are now: each thread's."""
    return _loaded(ptr, 2, t.uint64, "load_v2_b64")


def _store(ptr: Any, values: tuple[Any, ...], kind: t.dtype) -> None:
    """Words that are stored by eight bytes at once: whoever sees one half of these sees the other."""
    base = cast(ptr, t.pointer_type(t.uint64))
    parts = [cast(v, kind) for v in values]
    if kind is t.uint32:
        parts = [pack_b32_v2(*parts[i : i + 2]) for i in range(0, len(parts), 2)]
    for i, part in enumerate(parts):
        _threads.st(base + i, part)
    current().landing = True  # the end of a kernel is that of its stores, wherever they go


def st_v2_u32(ptr: Any, val0: Any, val1: Any) -> None:
    """Stores two words: each active thread."""
    _store(ptr, (val0, val1), t.uint32)


def st_v4_u32(ptr: Any, val0: Any, val1: Any, val2: Any, val3: Any) -> None:
    """Stores four words: each active thread."""
    _store(ptr, (val0, val1, val2, val3), t.uint32)


def st_v2_b64(ptr: Any, val0: Any, val1: Any) -> None:
    """Stores two words of 64 bits: each active thread."""
    _store(ptr, (val0, val1), t.uint64)


st_v2_b32, st_v4_b32 = st_v2_u32, st_v4_u32


# -- words that count


def red_release(ptr: Any, value: Any, scope: Any = None) -> None:
    """Adds to a word, after what the thread has done before."""
    atomic_add(ptr, value, scope, "release")


def arrive_inc(ptr: Any, thread_idx: Any, value: Any = 1, scope: Any = None) -> None:
    """Adds to a word for the whole block: thread 0, after all threads have come here."""
    _threads.syncthreads()
    with _only(value_of(thread_idx) == 0) as any_thread:
        if any_thread:
            red_release(ptr, value, scope)


def wait_eq(ptr: Any, thread_idx: Any, value: Any, scope: Any = None) -> None:
    """Makes the block wait until a word is equal to a value: thread 0 looks."""
    _shmem.wait_equal(ptr, 1, value, plain(scope))
    _threads.syncthreads()


class _only:  # noqa: N801
    """Makes some threads the active ones."""

    def __init__(self, condition: tensor) -> None:
        self._condition, self._program = condition, current()

    def __enter__(self) -> bool:
        self._outer = self._program.mask
        self._program.mask = self._program.active() & truth(self._condition).data
        return bool(self._program.mask.any())

    def __exit__(self, *error: object) -> None:
        self._program.mask = self._outer


def atomic_add_per_warp(ptr: Any, value: Any, scope: Any = None, semantic: Any = "relaxed") -> tensor:
    """Adds to a word once for each warp, and returns the old one to all its threads."""
    with _only(laneid() == 0):
        old = atomic_add(ptr, value, scope, semantic)
    return __shfl_sync_i32(0xFFFFFFFF, old, 0)


# -- exchange in a warp


def _lanes() -> np.ndarray:
    return np.arange(current().threads) % _WARP


def _delta(d: Any) -> Any:
    return np.asarray(value_of(d).data).astype(np.int64)


def __shfl_sync_i32(mask: Any, value: Any, laneid: Any) -> tensor:
    """The value of a thread of the warp."""
    return _threads.shuffled(value, np.broadcast_to(_delta(laneid) % _WARP, _lanes().shape))


def __shfl_up_sync_i32(mask: Any, value: Any, delta: Any) -> tensor:
    """The value of the thread so many before; the own one where there is none."""
    lanes = _lanes() - _delta(delta)
    return _threads.shuffled(value, np.where(lanes < 0, _lanes(), lanes))


def __shfl_down_sync_i32(mask: Any, value: Any, delta: Any) -> tensor:
    """The value of the thread so many after; the own one where there is none."""
    lanes = _lanes() + _delta(delta)
    return _threads.shuffled(value, np.where(lanes >= _WARP, _lanes(), lanes))


def __shfl_xor_sync_i32(mask: Any, value: Any, delta: Any) -> tensor:
    """The value of the thread whose number differs in these bits."""
    return _threads.shuffled(value, (_lanes() ^ _delta(delta)) % _WARP)


def __ballot_sync(mask: Any, predicate: Any) -> tensor:
    """The threads of the warp for which a condition holds, as bits."""
    program = current()
    held = np.broadcast_to(truth(value_of(predicate)).data, program.all.shape) & program.active()
    bits = (held.reshape(-1, _WARP).astype(np.uint64) << np.arange(_WARP, dtype=np.uint64)).sum(1)
    return tensor(np.repeat(bits.astype(np.uint32), _WARP).view(np.int32), t.int32, True)


# -- bits


def _joined(values: tuple[Any, ...], kind: t.dtype) -> tensor:
    parts = [value_of(v) for v in values]
    lanes = any(p.lanes for p in parts)
    rows = np.broadcast_arrays(*[np.atleast_1d(p.data) for p in parts])
    data = np.ascontiguousarray(np.stack(rows, -1)).view(kind.numpy)[..., 0]
    return tensor(data if lanes else data[0], kind, lanes)


def pack_b32_v2(val0: Any, val1: Any) -> tensor:
    """Two words as one of 64 bits, the first one in the lower half."""
    return _joined((cast(val0, t.uint32), cast(val1, t.uint32)), t.uint64)


def pack(src: Any, dst_type: Any) -> tensor:
    """Scalars as one of a wider type, the first one in the lowest bits."""
    values = plain(src)
    return _joined(tuple(values) if isinstance(values, tuple | list) else (values,), t.scalar_type(dst_type))


def unpack(src: Any, dst_type: Any) -> tuple[tensor, ...]:
    """A scalar as several of a narrower type, the first one of the lowest bits."""
    x, kind = value_of(src), t.scalar_type(dst_type)
    data = np.ascontiguousarray(np.atleast_1d(x.data)[:, None]).view(kind.numpy)
    return tuple(tensor(data[:, i] if x.lanes else data[0, i], kind, x.lanes) for i in range(data.shape[1]))


def multimem_ld_reduce_v4(*args: Any) -> Any:
    """Raises NotImplementedError: no topology has a switch that reduces."""
    raise NotImplementedError("language_extra.multimem_ld_reduce_v4: the fabric has no in-switch reduction")


def _multimem_store(*args: Any) -> Any:
    raise NotImplementedError("language_extra.multimem_st: the fabric has no in-switch multicast")


multimem_st_b32 = multimem_st_b64 = multimem_st_v2 = multimem_st_v4 = _multimem_store

__getattr__ = placeholders("triton_dist.language.extra.language_extra")
