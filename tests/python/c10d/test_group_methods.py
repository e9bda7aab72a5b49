"""The methods by which PyTorch's process groups are called directly, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR, failures, on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu._C import _distributed_c10d as c10d
from torchemu.errors import DeadlockError
from torchemu.runtime.waiting import host_time, reach

MILLISECOND = 10**9
SIZES = [1, 2, 3, 8, 64]


def whole() -> dist.ProcessGroup:
    """The default group."""
    group = dist.group.WORLD
    assert group is not None
    return group


def numbers(rank: int, *shape: int) -> np.ndarray:
    """Small whole numbers, other ones on each rank."""
    return np.random.default_rng(rank).integers(-3, 4, shape).astype(np.float32)


def on_group(n: int, fn: Callable[..., Any]) -> list[Any]:
    """fn(group, rank) on the ranks of a default group."""

    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        return fn(whole(), rank)

    return on_ranks(n, program)


def same(work: dist.Work, t: torch.Tensor, want: np.ndarray) -> None:
    """Fails unless the work ends with these elements in the tensor."""
    assert isinstance(work, dist.Work)
    work.wait()
    np.testing.assert_array_equal(t.numpy(), want)


@pytest.mark.parametrize("n", SIZES)
def test_reductions(open_world: OpenWorld, n: int) -> None:
    open_world(SIXTY_FOUR)
    each = [numbers(r, 2 * n) for r in range(n)]
    total, most = np.sum(each, axis=0), np.max(each, axis=0)
    largest = c10d.AllreduceOptions()
    largest.reduceOp = dist.ReduceOp.MAX

    def program(group: dist.ProcessGroup, rank: int) -> None:
        def own() -> torch.Tensor:
            return torch.tensor(each[rank])

        for given, opts, want in (
            ([own()], (), total),
            (own(), (), total),
            (own(), (dist.ReduceOp.MAX,), most),
            ([own()], (largest,), most),
            (own(), (c10d.AllreduceOptions(), timedelta(seconds=1)), total),
        ):
            same(group.allreduce(given, *opts), given if isinstance(given, torch.Tensor) else given[0], want)
        t = own()
        same(group.allreduce([t], op=dist.ReduceOp.MAX), t, most)
        a, b = own(), own() * 2
        same(group.allreduce_coalesced([a, b], largest), a, most)
        np.testing.assert_array_equal(b.numpy(), 2 * most)
        for opts in ((n - 1,), (c10d.ReduceOptions(rootRank=n - 1),), (n - 1, dist.ReduceOp.SUM)):
            t = own()
            same(group.reduce([t], *opts), t, total if rank == n - 1 else each[rank])
        part = torch.empty(2)
        mine = slice(2 * rank, 2 * rank + 2)
        same(group.reduce_scatter([part], [list(own().chunk(n))]), part, total[mine])
        same(group.reduce_scatter(part, list(own().chunk(n)), dist.ReduceOp.MAX), part, most[mine])
        same(group._reduce_scatter_base(part, own(), c10d.ReduceScatterOptions()), part, total[mine])
        second = torch.empty(2)
        work = group.reduce_scatter_tensor_coalesced([part, second], [own(), own() * 2])
        same(work, part, total[mine])
        np.testing.assert_array_equal(second.numpy(), 2 * total[mine])

    on_group(n, program)


@pytest.mark.parametrize("n", SIZES)
def test_exchanges(open_world: OpenWorld, n: int) -> None:
    open_world(SIXTY_FOUR)
    each = [numbers(r, 3) for r in range(n)]
    together = np.concatenate(each)
    matrix = [numbers(r, n, 2) for r in range(n)]

    def program(group: dist.ProcessGroup, rank: int) -> None:
        own, root = torch.tensor(each[rank]), n - 1

        def blocks() -> list[torch.Tensor]:
            return [torch.zeros(3) for _ in range(n)]

        def check(work: dist.Work, lists: list[torch.Tensor], want: np.ndarray) -> None:
            work.wait()
            np.testing.assert_array_equal(np.concatenate([b.numpy() for b in lists]), want)

        for opts in ((root,), (c10d.BroadcastOptions(rootRank=root),)):
            t = own.clone()
            same(group.broadcast([t], *opts), t, each[root])
        t = own.clone()
        same(group.broadcast(t, root=root), t, each[root])
        check(group.allgather([out := blocks()], [own]), out, together)
        check(group.allgather(out := blocks(), own, c10d.AllgatherOptions()), out, together)
        flat = torch.zeros(3 * n)
        same(group._allgather_base(flat, own), flat, together)
        pair = torch.zeros(3 * n), torch.zeros(3 * n)
        same(group.allgather_into_tensor_coalesced(list(pair), [own, own * 2]), pair[0], together)
        np.testing.assert_array_equal(pair[1].numpy(), 2 * together)
        lists = [[torch.zeros(3), torch.zeros(3)] for _ in range(n)]
        group.allgather_coalesced(lists, [own, own * 2]).wait()
        for r, (once, twice) in enumerate(lists):
            np.testing.assert_array_equal(np.stack([once.numpy(), twice.numpy()]), [each[r], 2 * each[r]])
        out = blocks() if rank == root else []
        group.gather([out] if out else [], [own], c10d.GatherOptions(rootRank=root)).wait()
        group.gather(out, own, root).wait()
        if out:
            check(group.allgather(blocks(), own), out, together)
        else:
            group.allgather(blocks(), own)
        given = [torch.tensor(row) for row in each] if rank == root else []
        t = torch.zeros(3)
        same(group.scatter([t], [given] if given else [], c10d.ScatterOptions(rootRank=root)), t, each[rank])
        same(group.scatter(t, given, root), t, each[rank])
        out = [torch.zeros(2) for _ in range(n)]
        theirs = np.concatenate([m[rank] for m in matrix])
        check(group.alltoall(out, list(torch.tensor(matrix[rank]))), out, theirs)
        flat = torch.zeros(n, 2)
        same(group.alltoall_base(flat, torch.tensor(matrix[rank]), [], []), flat, theirs.reshape(n, 2))
        same(group.alltoall_base(flat, torch.tensor(matrix[rank]), [1] * n, [1] * n), flat, theirs.reshape(n, 2))
        group.barrier().wait()
        group.barrier(c10d.BarrierOptions()).wait()

    on_group(n, program)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 64])
def test_gather_to_one_tensor(open_world: OpenWorld, n: int) -> None:
    open_world(SIXTY_FOUR)

    def program(group: dist.ProcessGroup, rank: int) -> None:
        root, own = n - 1, torch.tensor(numbers(rank, 2, 2))
        want = np.stack([numbers(r, 2, 2) for r in range(n)])
        for shape in ((n, 2, 2), (2 * n, 2), (4 * n,)):
            out = torch.full(shape, -9.0)
            assert dist.gather_single(own, out if rank == root else None, root) is None
            np.testing.assert_array_equal(out.numpy(), want.reshape(shape) if rank == root else np.full(shape, -9))
        out = torch.zeros(n, 2, 2)
        work = dist.gather_into_tensor(own, out, group=group, async_op=True, group_dst=root)
        assert work is not None
        same(work, out, want if rank == root else np.zeros((n, 2, 2)))

    on_group(n, program)


def test_misuse_of_gather_to_one_tensor(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(group: dist.ProcessGroup, rank: int) -> None:
        t = torch.ones(2)
        cases: list[tuple[Any, type[Exception], str]] = [
            (None, ValueError, "``gather_tensor`` must be specified on destination rank"),
            (torch.empty(3), ValueError, r"gather_tensor has 3 elements, but must have .* 2 \* 2"),
            (torch.empty(2, 4)[:, ::2], ValueError, "gather_tensor must be contiguous"),
            (torch.empty(4, dtype=torch.float64), ValueError, "different dtypes"),
            ([t, t], TypeError, "Expected parameter `gather_tensor` of type torch.Tensor"),
        ]
        for out, kind, text in cases:
            with pytest.raises(kind, match=text):
                dist.gather_single(t, out, rank)
        with pytest.raises(TypeError, match=r"Expected parameter `tensor` of type torch\.Tensor"):
            dist.gather_single([t])  # type: ignore[arg-type]
        with pytest.raises(RuntimeError, match="invalid root rank: 5"):
            dist.gather_single(t, t, 5)

    on_group(2, program)


def test_messages(open_world: OpenWorld) -> None:
    open_world("default")

    def program(group: dist.ProcessGroup, rank: int) -> None:
        t = torch.full((3,), float(rank))
        if rank == 0:
            group.send([t], 1, 7).wait()
            work = group.recv_anysource([t], 3)
            work.wait()
            assert t.tolist() == [2, 2, 2] and work.source_rank() == 2
        elif rank == 1:
            same(group.recv(t, 0, 7), t, np.zeros(3))
        elif rank == 2:
            group.send(t, 0, 3).wait()

    on_group(3, program)


def test_group_ranks_are_meant(open_world: OpenWorld) -> None:
    open_world("default")

    def program(group: dist.ProcessGroup, rank: int) -> None:
        upper = dist.new_group([2, 3])
        if rank >= 2:
            t = torch.full((1,), float(rank))
            same(upper.broadcast([t], 1), t, np.array([3.0]))
            same(upper.reduce([t], 0), t, np.array([6.0 if rank == 2 else 3.0]))

    on_group(4, program)


def test_limits_of_works(open_world: OpenWorld) -> None:
    open_world("sips2")
    opts = c10d.AllreduceOptions(timeout=timedelta(milliseconds=5))

    def program(group: dist.ProcessGroup, rank: int) -> None:
        if rank == 0:
            for work in (group.allreduce([torch.ones(1)], opts), group.barrier(timedelta(milliseconds=5))):
                start = host_time()
                with pytest.raises(RuntimeError, match="Operation timed out! It took more than 5 ms"):
                    work.wait()
                assert host_time() - start == 5 * MILLISECOND
        else:
            reach(50 * MILLISECOND)
            group.allreduce([torch.ones(1)])
            group.barrier()

    on_group(2, program)


def test_coalescing_by_hand(open_world: OpenWorld) -> None:
    world = open_world("sips2")

    def program(group: dist.ProcessGroup, rank: int) -> None:
        group._start_coalescing(torch.device("cuda"))
        a, b = torch.ones(2), torch.ones(3)
        dist.all_reduce(a)
        dist.all_reduce(b)
        group._end_coalescing(torch.device("cuda")).wait()
        assert (a.tolist(), b.tolist()) == ([2, 2], [2, 2, 2])
        with pytest.raises(RuntimeError, match="_start_coalescing comes first"):
            group._end_coalescing()
        group._start_coalescing()
        with pytest.raises(ValueError, match="non-empty op list at the start of coalescing"):
            group._start_coalescing()
        with pytest.raises(RuntimeError, match="these are 0"):
            group._end_coalescing()

    on_group(2, program)
    assert [c["collective"] for c in world.collectives()] == ["all_reduce_coalesced"]


def test_what_groups_are_asked(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(group: dist.ProcessGroup, rank: int) -> None:
        assert (group.rank(), group.size(), group.name(), group._get_backend_name()) == (rank, 2, "nccl", "nccl")
        assert group._get_sequence_number_for_group() == 0
        dist.barrier()
        assert group._get_sequence_number_for_group() == 1
        assert group._get_backend(torch.device("cuda")) is group is group.boxed().unbox()
        with pytest.raises(RuntimeError, match="No backend type associated with device type cpu"):
            group._get_backend(torch.device("cpu"))
        assert group._device_types == [torch.device("cuda")]
        group.set_timeout(timedelta(seconds=7))
        assert group.timeout == group.options._timeout == timedelta(seconds=7)
        dist.set_timeout(timedelta(seconds=8), group)
        assert group.timeout == timedelta(seconds=8)
        assert group.bound_device_id is None
        with pytest.raises(RuntimeError, match="setBoundDeviceId must have an index"):
            group.bound_device_id = torch.device("cuda")
        group.bound_device_id = torch.device("cuda", rank)
        assert group.bound_device_id == torch.device("cuda", rank)
        group.get_group_store().set(f"from {rank}", "x")
        assert group.get_group_store().get(f"from {1 - rank}") == b"x"
        group._set_group_desc("ours")
        assert group.group_desc == "ours"
        half = group.split_group([0, 1])
        assert half.size() == 2 and half is not group
        with pytest.raises(NotImplementedError, match="use new_group"):
            group.merge_remote_group(None, 4)
        group.shutdown()
        with pytest.raises(ValueError, match="was destroyed"):
            dist.all_reduce(torch.ones(1), group=group)

    on_group(2, program)


def test_misuse(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(group: dist.ProcessGroup, rank: int) -> None:
        t = torch.ones(2)
        with pytest.raises(TypeError, match=r"allreduce\(\): incompatible function arguments: 3 is no tensor"):
            group.allreduce(3)
        with pytest.raises(TypeError, match=r"allgather\(\): incompatible function arguments: 3 is no list"):
            group.allgather(3, t)
        for several in ([], [t, t]):
            with pytest.raises(RuntimeError, match=f"Expecting one tensor only but got {len(several)}"):
                group.broadcast(several, 0)
        with pytest.raises(TypeError, match=r"AllreduceOptions, arg0: .*ReduceOp"):
            c10d.AllreduceOptions().reduceOp = "sum"
        with pytest.raises(TypeError, match="ReduceScatterOptions"):
            c10d.ReduceScatterOptions(reduceOp=3)
        with pytest.raises(RuntimeError, match="invalid root rank: 2"):
            group.broadcast(t, 2)
        with pytest.raises(RuntimeError, match="allgather: invalid output tensor list"):
            group.allgather([t], t)

    on_group(2, program)


def test_options_have_pytorchs_defaults() -> None:
    unset = timedelta(milliseconds=-1)
    assert vars(c10d.AllreduceOptions()) == {"timeout": unset, "asyncOp": True, "reduceOp": dist.ReduceOp.SUM}
    assert vars(c10d.BroadcastOptions()) == {"timeout": unset, "asyncOp": True, "rootRank": 0, "rootTensor": 0}
    assert vars(c10d.ReduceOptions()) == {**vars(c10d.AllreduceOptions()), "rootRank": 0, "rootTensor": 0}
    assert vars(c10d.BarrierOptions()) == {"timeout": unset, "asyncOp": True, "device_ids": [], "device": None}
    assert isinstance(c10d.AllreduceCoalescedOptions(), c10d.AllreduceOptions)


def test_a_deadlock_names_the_place_of_a_method(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group()
        if rank == 0:
            t = torch.ones(2)
            whole().allreduce([t]).wait()
            t.tolist()

    (error,) = failures(2, program).values()
    assert isinstance(error, DeadlockError)
    assert "all_reduce of 2 float32 elements" in str(error) and "test_group_methods.py" in str(error)
