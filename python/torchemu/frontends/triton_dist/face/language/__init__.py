"""triton_dist.language: ranks, peers' memory, waits and signals."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchemu.frontends.triton import _shmem, _threads
from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._placeholders import placeholders
from torchemu.frontends.triton._program import current
from torchemu.frontends.triton._values import plain, tensor, value_of
from torchemu.frontends.triton_dist.face.language import extra
from torchemu.frontends.triton_dist.face.language._vectors import (
    Vector as vector,  # noqa: N813
)
from torchemu.frontends.triton_dist.face.language._vectors import (
    extract,
    insert,
    ld_vector,
    make_vector,
    st_vector,
    zeros_vector,
)

__all__ = [
    "consume_token",
    "extra",
    "extract",
    "insert",
    "ld_vector",
    "make_vector",
    "notify",
    "num_ranks",
    "rank",
    "simt_exec_region",
    "st_vector",
    "symm_at",
    "vector",
    "wait",
    "zeros_vector",
]

_TOKEN = tensor(np.int32(0), t.int32)

_SCOPES = ("gpu", "sys", "cta", "inter_node", "intra_node")


def rank(axis: Any = -1) -> tensor:
    """The number of the rank, among all."""
    return tensor(np.int32(current().launch.index), t.int32)


def num_ranks(axis: Any = -1) -> tensor:
    """Returns how many ranks there are."""
    return tensor(np.int32(len(current().launch.ranks)), t.int32)


def symm_at(ptr: Any, rank: Any) -> tensor:
    """The place of a pointer to symmetric memory on another rank.

    Raises:
        TypeError: it is no pointer of a scalar.
        ValueError: there is no such rank.
    """
    p, program = _shmem.pointer(ptr, "ptr"), current()
    peer = value_of(rank)
    if peer.lanes or p.lanes:
        places = np.zeros(program.threads, np.int64)
        addresses, peers = (np.broadcast_to(v.data, program.all.shape) for v in (p, peer))
        for lane in np.flatnonzero(program.active()).tolist():
            places[lane] = _shmem.on(program, int(addresses[lane]), int(peers[lane]))
        return tensor(places, p.dtype, True)
    return tensor(np.int64(_shmem.on(program, int(p.data), int(peer.data))), p.dtype)


def wait(barrierPtrs: Any, numBarriers: Any, scope: Any, semantic: Any, waitValue: Any = 1) -> tensor:  # noqa: N803
    """Waits until each of so many words is equal to a value; what is consumed with the token comes after.

    Raises:
        TypeError: the words are not integers of 32 or 64 bits.
        ValueError: an unknown scope.
    """
    if plain(scope) not in _SCOPES:
        raise ValueError(f"wait: scope {scope!r} is not one of {', '.join(_SCOPES)}")
    _shmem.wait_equal(barrierPtrs, numBarriers, waitValue, plain(scope), plain(semantic))
    return _TOKEN


def consume_token(value: Any, token: Any) -> Any:
    """The value: what is done with it comes after the wait that has given the token."""
    return value


_OPS = {"set": 1, "add": 0}


def notify(ptr: Any, rank: Any, signal: Any = 1, sig_op: Any = "set", comm_scope: Any = "inter_node") -> None:
    """Sets or adds to a word on a rank, after all earlier stores of thread 0.

    Raises:
        TypeError: the word is not of 64 bits.
        ValueError: an unknown operation or scope; there is no such rank.
    """
    op, scope = plain(sig_op), plain(comm_scope)
    if op not in _OPS:
        raise ValueError(f"notify: sig_op is set or add, not {op!r}")
    if scope not in ("gpu", "intra_node", "inter_node"):
        raise ValueError(f"notify: comm_scope is gpu, intra_node or inter_node, not {scope!r}")
    if scope != "inter_node":
        _shmem.order("fence")
    _shmem.notify(ptr, current().launch.index if scope == "gpu" else rank, signal, _OPS[op])


class simt_exec_region:  # noqa: N801
    """A part of a kernel that threads execute by themselves: ``with dl.simt_exec_region() as (tid, nthreads)``."""

    def __enter__(self) -> tuple[tensor, tensor]:
        _threads.syncthreads()
        return _threads.tid(0), _threads.ntid(0)

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            _threads.syncthreads()


__getattr__ = placeholders("triton_dist.language", is_package=True)
