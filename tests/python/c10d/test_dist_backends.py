"""Backends that a program registers: what their creators are called with, and what every operation calls of them.

What is expected here was seen in PyTorch 2.11, or, for subclasses of Backend, which cannot be made there, in 2.15.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from conftest import OpenWorld
from own_backends import Noting, noting, several, t

import torchemu.distributed as dist

N = 3


SUM, MAX = dist.ReduceOp.SUM, dist.ReduceOp.MAX
ALL = [(1,)] * N

CALLS: dict[str, tuple[Callable[..., Any], Any]] = {
    "all_reduce": (lambda **k: dist.all_reduce(t(2), **k), ("allreduce", [(2,)], ("AllreduceOptions", ..., SUM))),
    "all_reduce max": (
        lambda **k: dist.all_reduce(t(2), MAX, **k),
        ("allreduce", [(2,)], ("AllreduceOptions", ..., MAX)),
    ),
    "reduce": (
        lambda **k: dist.reduce(t(2), 2, MAX, **k),
        ("reduce", [(2,)], ("ReduceOptions", ..., MAX, 2)),
    ),
    "broadcast": (
        lambda **k: dist.broadcast(t(2), group_src=1, **k),
        ("broadcast", [(2,)], ("BroadcastOptions", ..., 1)),
    ),
    "all_gather": (
        lambda **k: dist.all_gather(several(*ALL), t(1), **k),
        ("allgather", [ALL], [(1,)], ("AllgatherOptions", ...)),
    ),
    "all_gather_into_tensor": (
        lambda **k: dist.all_gather_into_tensor(t(2 * N), t(2), **k),
        ("_allgather_base", (2 * N,), (2,), ("AllgatherOptions", ...)),
    ),
    "all_gather_coalesced": (
        lambda **k: dist.all_gather_coalesced([several((1,), (2,)) for _ in range(N)], several((1,), (2,)), **k),
        ("allgather_coalesced", [[(1,), (2,)]] * N, [(1,), (2,)], ("AllgatherOptions", ...)),
    ),
    "all_reduce_coalesced": (
        lambda **k: dist.all_reduce_coalesced(several((1,), (2,)), **k),
        ("allreduce_coalesced", [(1,), (2,)], ("AllreduceCoalescedOptions", ..., SUM)),
    ),
    "reduce_scatter": (
        lambda **k: dist.reduce_scatter(t(1), several(*ALL), **k),
        ("reduce_scatter", [(1,)], [ALL], ("ReduceScatterOptions", ..., SUM)),
    ),
    "reduce_scatter_tensor": (
        lambda **k: dist.reduce_scatter_tensor(t(2), t(2 * N), MAX, **k),
        ("_reduce_scatter_base", (2,), (2 * N,), ("ReduceScatterOptions", ..., MAX)),
    ),
    "all_to_all": (
        lambda **k: dist.all_to_all(several(*ALL), several(*ALL), **k),
        ("alltoall", ALL, ALL, ("AllToAllOptions", ...)),
    ),
    "all_to_all_single": (
        lambda **k: dist.all_to_all_single(t(N), t(N), **k),
        ("alltoall_base", (N,), (N,), [], [], ("AllToAllOptions", ...)),
    ),
    "all_to_all_single by sizes": (
        lambda **k: dist.all_to_all_single(t(6), t(3), [1, 2, 3], [0, 3, 0], **k),
        ("alltoall_base", (6,), (3,), [1, 2, 3], [0, 3, 0], ("AllToAllOptions", ...)),
    ),
    "barrier": (lambda **k: dist.barrier(**k), ("barrier", ("BarrierOptions", ...))),
}
"""Calls, and what they call of the group; ``...`` stands for whether they are asynchronous."""


def with_async(value: Any, async_op: bool) -> Any:
    """The same with ``...`` filled in."""
    if value is ...:
        return async_op
    if isinstance(value, tuple):
        return tuple(with_async(v, async_op) for v in value)
    return value


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("async_op", [False, True])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_collective_calls_its_method(open_world: OpenWorld, name: str, async_op: bool) -> None:
    open_world()
    call, want = CALLS[name]

    def program(group: Noting) -> None:
        work = call(async_op=async_op)
        assert group.notes == [with_async(want, async_op)]
        assert group.works[0].waited == (not async_op)
        assert work is (group.works[0] if async_op else None)

    noting(N, program)


def test_rooted_collectives_give_lists_at_the_root_only(open_world: OpenWorld) -> None:
    open_world()

    def program(group: Noting) -> None:
        root = group.rank() == 1
        dist.gather(t(1), several(*ALL) if root else None, 1)
        dist.scatter(t(1), several(*ALL) if root else None, 1)
        lists = [ALL] if root else []
        assert group.notes == [
            ("gather", lists, [(1,)], ("GatherOptions", False, 1)),
            ("scatter", [(1,)], lists, ("ScatterOptions", False, 1)),
        ]

    noting(N, program)


def test_messages(open_world: OpenWorld) -> None:
    open_world()

    def program(group: Noting) -> None:
        if group.rank():
            return
        dist.send(t(1), 1, tag=7)
        assert dist.recv(t(1), 2) == 2
        dist.irecv(t(1), tag=3)
        works = dist.batch_isend_irecv([dist.P2POp(dist.isend, t(1), 1), dist.P2POp(dist.irecv, t(1), 2)])
        assert works == group.works[-2:]
        assert group.notes == [
            ("send", [(1,)], 1, 7),
            ("recv", [(1,)], 2, 0),
            ("recv_anysource", [(1,)], 3),
            ("send", [(1,)], 1, 0),
            ("recv", [(1,)], 2, 0),
        ]
        assert [work.waited for work in group.works] == [1, 1, 0, 0, 0]

    noting(N, program)


def test_coalesced_and_functional(open_world: OpenWorld) -> None:
    open_world()

    def program(group: Noting) -> None:
        with dist._coalescing_manager():
            dist.all_reduce(t(1))
            dist.all_reduce(t(2))
        with dist._coalescing_manager(async_ops=True) as manager:
            dist.all_gather_into_tensor(t(N), t(1))
            dist.all_gather_into_tensor(t(2 * N), t(2))
        assert manager.works == group.works[1:]
        with dist._coalescing_manager():
            dist.reduce_scatter_tensor(t(1), t(N))
            dist.reduce_scatter_tensor(t(2), t(2 * N))
        assert group.notes == [
            ("allreduce_coalesced", [(1,), (2,)], ("AllreduceCoalescedOptions", False, SUM)),
            ("allgather_into_tensor_coalesced", [(N,), (2 * N,)], [(1,), (2,)], ("AllgatherOptions", True)),
            ("reduce_scatter_tensor_coalesced", [(1,), (2,)], [(N,), (2 * N,)], ("ReduceScatterOptions", False, SUM)),
        ]

    noting(N, program)
