"""NVSHMEM's functions for kernels; rocSHMEM's names for them too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchemu.frontends.triton import _shmem
from torchemu.frontends.triton import _types as t
from torchemu.frontends.triton._conversions import cast
from torchemu.frontends.triton._placeholders import placeholders
from torchemu.frontends.triton._program import current
from torchemu.frontends.triton._shmem import THREAD, Rocm, variants
from torchemu.frontends.triton._threads import SET, send_signal
from torchemu.frontends.triton._values import plain, tensor

NVSHMEM_CMP_EQ, NVSHMEM_CMP_NE, NVSHMEM_CMP_GT, NVSHMEM_CMP_LE, NVSHMEM_CMP_LT, NVSHMEM_CMP_GE = range(6)
NVSHMEM_SIGNAL_SET, NVSHMEM_SIGNAL_ADD = 9, 10
NVSHMEM_TEAM_INVALID, NVSHMEM_TEAM_WORLD, NVSHMEM_TEAM_SHARED, NVSHMEMX_TEAM_NODE = -1, 0, 1, 2
NVSHMEMX_TEAM_SAME_MYPE_NODE = 3
NVSHMEM_TEAM_NODE = NVSHMEMX_TEAM_NODE
ROCSHMEM_CMP_EQ, ROCSHMEM_CMP_NE, ROCSHMEM_CMP_GT = Rocm(0), Rocm(1), Rocm(2)
ROCSHMEM_CMP_GE, ROCSHMEM_CMP_LT, ROCSHMEM_CMP_LE = Rocm(3), Rocm(4), Rocm(5)
ROCSHMEM_SIGNAL_SET, ROCSHMEM_SIGNAL_ADD = Rocm(0), Rocm(1)
ROCSHMEM_TEAM_WORLD = 0


def _number(n: int) -> tensor:
    return tensor(np.int32(n), t.int32)


# -- who


def my_pe() -> tensor:
    """The number of the rank."""
    return _number(current().launch.index)


def n_pes() -> tensor:
    """Returns how many ranks there are."""
    return _number(len(current().launch.ranks))


def team_my_pe(team: Any) -> tensor:
    """The number of the rank in a team; -1 where it is no member."""
    program = current()
    members = _shmem.team(program, team)
    return _number(members.index(program.launch.index) if program.launch.index in members else -1)


def team_n_pes(team: Any) -> tensor:
    """Returns how many ranks a team has."""
    return _number(len(_shmem.team(current(), team)))


def team_translate_pe(src_team: Any, src_pe: Any, dest_team: Any) -> tensor:
    """The number in another team of a member of a team; -1 where it is none."""
    program = current()
    pe = _shmem.team(program, src_team)[_shmem.whole(src_pe)]
    members = _shmem.team(program, dest_team)
    return _number(members.index(pe) if pe in members else -1)


# -- memory


def int_p(dest: Any, value: Any, pe: Any) -> None:
    """Stores an int32 in another rank's memory: each active thread."""
    program = current()
    program.pay()
    program.effects += 1
    for at, number, peer in _shmem.each(THREAD, _shmem.pointer(dest, "dest"), cast(value, t.int32), pe):
        send_signal(program, _shmem.on(program, at, peer), 4, SET, number)


def remote_ptr(dest: Any, pe: Any) -> tensor:
    """The place of a pointer on another rank, as threads reach it; 0 where that is on another node."""
    p, program = _shmem.pointer(dest, "dest"), current()
    peer = _shmem.whole(pe)
    place = _shmem.on(program, int(p.data), peer)
    return tensor(np.int64(place if program.launch.ranks[peer] in program.launch.node else 0), p.dtype)


def remote_mc_ptr(team: Any, dest: Any) -> tensor:
    """Raises NotImplementedError: no topology has a switch that multiplies stores."""
    raise NotImplementedError(
        "libshmem_device.remote_mc_ptr: the fabric has no in-switch multicast: nvshmem multimem is not supported on it"
    )


def fence() -> None:
    """Makes what has been sent to a rank before land before what is sent there after."""
    _shmem.order("fence")


def quiet() -> None:
    """Waits until all has landed that the program has sent."""
    _shmem.order("quiet")


def _putmem(later: bool, name: str) -> Callable[[str], Callable[..., None]]:
    def make(group: str) -> Callable[..., None]:
        def call(dest: Any, source: Any, bytes: Any, pe: Any, qp_id: Any = None) -> None:  # noqa: A002
            _shmem.put(name, group, later, dest, source, bytes, pe)

        return call

    return make


def _getmem(later: bool, name: str) -> Callable[[str], Callable[..., None]]:
    def make(group: str) -> Callable[..., None]:
        def call(dest: Any, source: Any, bytes: Any, pe: Any, qp_id: Any = None) -> None:  # noqa: A002
            _shmem.get(name, group, later, dest, source, bytes, pe)

        return call

    return make


def _putmem_signal(later: bool, name: str) -> Callable[[str], Callable[..., None]]:
    def make(group: str) -> Callable[..., None]:
        def call(
            dest: Any,
            source: Any,
            bytes: Any,  # noqa: A002
            sig_addr: Any,
            signal: Any,
            sig_op: Any,
            pe: Any,
            qp_id: Any = None,
        ) -> None:
            _shmem.put(name, group, later, dest, source, bytes, pe, (sig_addr, signal, sig_op))

        return call

    return make


def signal_op(sig_addr: Any, signal: Any, sig_op: Any, pe: Any) -> None:
    """Sets or adds to a word of another rank: each active thread."""
    _shmem.signal_op(sig_addr, signal, sig_op, pe)


def signal_wait_until(sig_addr: Any, cmp_: Any, cmp_val: Any) -> tensor:
    """Waits until a word compares so with a value: each active thread for its own. Returns the word."""
    return _shmem.wait_until(sig_addr, cmp_, cmp_val)


# -- everybody


def _everybody(quiet: bool) -> Callable[[str], Callable[..., None]]:
    def make(group: str) -> Callable[..., None]:
        return lambda: _shmem.barrier(group, _shmem.WORLD, quiet)

    return make


def _team(quiet: bool) -> Callable[[str], Callable[..., None]]:
    def make(group: str) -> Callable[..., None]:
        return lambda team: _shmem.barrier(group, team, quiet)

    return make


def _bytes(dest: Any, nelems: Any, in_bytes: bool) -> int:
    size = 1 if in_bytes else _shmem.pointer(dest, "dest").dtype.element_ty.itemsize
    return _shmem.whole(nelems) * size


def _broadcast(in_bytes: bool) -> Callable[[str], Callable[..., None]]:
    def make(group: str) -> Callable[..., None]:
        def call(team: Any, dest: Any, source: Any, nelems: Any, root: Any) -> None:
            _shmem.collect(group, team, dest, source, _bytes(dest, nelems, in_bytes), _shmem.whole(plain(root)))

        return call

    return make


def _fcollect(in_bytes: bool) -> Callable[[str], Callable[..., None]]:
    def make(group: str) -> Callable[..., None]:
        def call(team: Any, dest: Any, source: Any, nelems: Any) -> None:
            _shmem.collect(group, team, dest, source, _bytes(dest, nelems, in_bytes), None)

        return call

    return make


_FAMILIES: tuple[tuple[str, Any, str], ...] = (
    ("putmem", _putmem(False, "putmem"), "Writes bytes to another rank's memory"),
    ("putmem_nbi", _putmem(True, "putmem_nbi"), "Writes bytes to another rank's memory, later"),
    ("putmem_rma", _putmem(False, "putmem_rma"), "Writes bytes to another rank's memory"),
    ("putmem_rma_nbi", _putmem(True, "putmem_rma_nbi"), "Writes bytes to another rank's memory, later"),
    ("getmem", _getmem(False, "getmem"), "Brings bytes from another rank's memory"),
    ("getmem_nbi", _getmem(True, "getmem_nbi"), "Brings bytes from another rank's memory, later"),
    ("putmem_signal", _putmem_signal(False, "putmem_signal"), "Writes bytes and then signals"),
    ("putmem_signal_nbi", _putmem_signal(True, "putmem_signal_nbi"), "Writes bytes and then signals, later"),
    ("putmem_signal_rma", _putmem_signal(False, "putmem_signal_rma"), "Writes bytes and then signals"),
    ("putmem_signal_rma_nbi", _putmem_signal(True, "putmem_signal_rma_nbi"), "Writes bytes and then signals, later"),
    ("barrier_all", _everybody(True), "Waits for all ranks, and for what they have sent"),
    ("sync_all", _everybody(False), "Waits for all ranks"),
    ("barrier", _team(True), "Waits for a team, and for what it has sent"),
    ("team_sync", _team(False), "Waits for a team"),
    ("sync", _team(False), "Waits for a team"),
    ("broadcast", _broadcast(False), "Puts the root's elements to a team"),
    ("broadcastmem", _broadcast(True), "Puts the root's bytes to a team"),
    ("fcollect", _fcollect(False), "Puts everybody's elements to a team"),
    ("fcollectmem", _fcollect(True), "Puts everybody's bytes to a team"),
)

for _name, _make, _doc in _FAMILIES:
    globals().update(variants(_make, _name, _doc))


__getattr__ = placeholders("triton_dist.language.extra.libshmem_device")
