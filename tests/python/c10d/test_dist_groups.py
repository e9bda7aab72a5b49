"""Process groups: how ranks come by them, what they know of them, and how they leave them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import OpenWorld
from launch import launch, lines, written
from ranks import SIXTY_FOUR, failures, on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu.distributed import GroupMember, distributed_c10d
from torchemu.errors import MismatchError

pytestmark = pytest.mark.shows("PyTorch: groups")

c10d = distributed_c10d


def total(group: Any = None) -> float:
    """Returns what an all_reduce of ones gives: the number of ranks that take part."""
    t = torch.ones(1)
    dist.all_reduce(t, group=group)
    return t.item()


# -- the default group


@pytest.mark.parametrize("world_size", [1, 2, 3, 8, 64])
def test_the_default_group(open_world: OpenWorld, world_size: int) -> None:
    open_world(SIXTY_FOUR)

    def program(rank: int) -> None:
        assert not dist.is_initialized() and dist.group.WORLD is None
        dist.init_process_group("nccl", world_size=world_size, rank=rank)
        whole = dist.group.WORLD
        assert dist.is_initialized() and whole is GroupMember.WORLD is c10d._get_default_group()
        assert (dist.get_rank(), dist.get_world_size()) == (whole.rank(), whole.size()) == (rank, world_size)
        assert dist.get_process_group_ranks(whole) == dist.get_process_group_ranks(None) == list(range(world_size))
        assert (whole.group_name, whole.group_desc, whole.name()) == ("0", "default_pg", "nccl")
        assert dist.get_group_rank(whole, 99) == dist.get_global_rank(whole, 99) == 99
        assert total(whole) == total() == world_size
        dist.destroy_process_group()
        assert not dist.is_initialized() and dist.group.WORLD is None

    on_ranks(world_size, program)


def test_a_spawn_has_the_group_of_its_parent(open_world: OpenWorld) -> None:
    open_world("default")
    dist.init_process_group(timeout=timedelta(seconds=5))

    def program(rank: int) -> Any:
        mine = dist.group.WORLD
        assert mine is dist.group.WORLD and dist.is_initialized()
        inherited = total(), mine.timeout, dist.get_pg_count()
        dist.init_process_group("gloo")
        own = total(), dist.group.WORLD.timeout, dist.get_pg_count()
        assert dist.group.WORLD is not mine
        with pytest.raises(ValueError, match="twice"):
            dist.init_process_group("gloo")
        return inherited, own

    want = (4.0, timedelta(seconds=5), 1), (4.0, timedelta(minutes=30), 1)
    assert on_ranks(4, program) == [want] * 4
    assert on_ranks(4, program) == [want] * 4  # the parent's group serves again
    assert dist.get_rank() == 0


def test_init_again_after_destroy(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        for _ in range(3):
            dist.init_process_group()
            pair = dist.new_group([0, 1])
            assert (dist.group.WORLD.group_name, pair.group_name, dist.get_pg_count()) == ("0", "1", 2)
            assert total() == total(pair) == 2
            dist.destroy_process_group()
            with pytest.raises(ValueError, match="Invalid process group specified"):
                total(pair)

    on_ranks(2, program)


@pytest.mark.parametrize(
    ("backend", "name", "config", "minutes"),
    [
        (None, "ahbm", "cpu:ahbm,cuda:ahbm,ahbm:ahbm", 30),
        ("NCCL", "nccl", "cuda:nccl", 10),
        ("gloo", "gloo", "cpu:gloo,cuda:gloo", 30),
        ("cpu:gloo,cuda:nccl", "cpu:gloo,cuda:nccl", "cpu:gloo,cuda:nccl", 30),
    ],
)
def test_backends(open_world: OpenWorld, backend: str | None, name: str, config: str, minutes: int) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group(backend)
        assert (dist.get_backend(), dist.get_backend_config()) == (name, config)
        assert dist.group.WORLD.timeout == timedelta(minutes=minutes)
        assert dist.get_backend(dist.new_group([0, 1])) == name
        assert dist.get_backend(dist.new_group([0, 1], backend="gloo")) == "gloo"

    on_ranks(2, program)


def test_what_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dist.is_available() and dist.is_nccl_available() and dist.is_gloo_available()
    assert not (dist.is_mpi_available() or dist.is_ucc_available() or dist.is_xccl_available())
    assert [dist.is_backend_available(b) for b in ("nccl", "GLOO", "cpu:gloo,cuda:nccl", "cpu:mpi", "x")] == [
        True, True, True, False, False,
    ]  # fmt: skip
    assert dist.Backend("NCCL") == dist.Backend.NCCL == "nccl"
    assert [dist.get_default_backend_for_device(d) for d in ("cpu", "cuda:3", "ahbm", "mps")] == [
        "gloo",
        "nccl",
        "ahbm",
        "gloo",
    ]
    with pytest.raises(ValueError, match="Default backend not registered for device : tpu"):
        dist.get_default_backend_for_device("tpu")
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    assert not dist.is_torchelastic_launched()
    assert dist.get_node_local_rank(5) == 5
    with pytest.raises(RuntimeError, match="LOCAL_RANK is not in the environment"):
        dist.get_node_local_rank()
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert dist.get_node_local_rank(5) == 3


def test_what_init_keeps(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> Any:
        store = dist.HashStore()
        dist.init_process_group("gloo", store=store, rank=rank, world_size=2, device_id=rank, timeout=timedelta(3))
        pair = dist.new_group()
        assert pair.bound_device_id == dist.group.WORLD.bound_device_id == rank
        assert c10d._get_default_store() is store
        dist.group.WORLD.set_timeout(timedelta(4))
        c10d._set_pg_timeout(timedelta(7), pair)
        return dist.group.WORLD.timeout.days, pair.timeout.days

    assert on_ranks(2, program) == [(4, 7)] * 2


@pytest.mark.parametrize("arguments", [{}, {"init_method": "tcp://localhost:23456", "world_size": 3}], ids=str)
def test_the_default_store_is_shared(open_world: OpenWorld, arguments: dict[str, Any]) -> None:
    open_world("default")

    def program(rank: int) -> Any:
        dist.init_process_group("gloo", rank=rank, **{"world_size": 3, **arguments})
        store = c10d._get_default_store()
        store.set(f"key {rank}", str(rank))
        part = dist.new_group([1, 2])
        if rank:
            part.get_group_store().add("members", rank)
        return store.get(f"key {(rank + 1) % 3}"), rank and part.get_group_store().wait(["members"])

    assert on_ranks(3, program) == [(b"1", 0), (b"2", None), (b"0", None)]


# -- other groups


@pytest.mark.parametrize("world_size", [1, 2, 3, 7, 64])
def test_new_group(open_world: OpenWorld, world_size: int) -> None:
    """Groups of every second rank and of the rest; ranks are sorted."""
    open_world(SIXTY_FOUR)
    halves = [list(range(k, world_size, 2)) for k in range(min(2, world_size))]

    def program(rank: int) -> None:
        dist.init_process_group()
        groups = [dist.new_group(half[::-1], group_desc=f"half {k}") for k, half in enumerate(halves)]
        for k, (group, half) in enumerate(zip(groups, halves, strict=True)):
            if rank not in half:
                assert group == GroupMember.NON_GROUP_MEMBER
                continue
            assert dist.get_rank(group) == group.rank() == half.index(rank)
            assert dist.get_world_size(group) == group.size() == len(half)
            assert dist.get_process_group_ranks(group) == half
            assert [dist.get_group_rank(group, r) for r in half] == list(range(len(half)))
            assert [dist.get_global_rank(group, i) for i in range(len(half))] == half
            assert (group.group_name, group.group_desc) == (str(k + 1), f"half {k}")
            assert c10d._resolve_process_group(c10d._get_process_group_name(group)) is group
            assert total(group) == len(half)
        assert dist.get_pg_count() == 1 + len(halves)
        assert total() == world_size

    on_ranks(world_size, program)


def test_unsorted_ranks(open_world: OpenWorld) -> None:
    open_world("default")

    def program(rank: int) -> Any:
        dist.init_process_group()
        group = dist.new_group([2, 0, 3], sort_ranks=False)
        if rank == 1:
            return None
        outs = [torch.zeros(1) for _ in range(3)]
        dist.all_gather(outs, torch.full((1,), float(rank)), group=group)
        return group.rank(), [t.item() for t in outs]

    assert on_ranks(4, program) == [(1, [2, 0, 3]), None, (0, [2, 0, 3]), (2, [2, 0, 3])]


def test_ranks_are_numbers_in_the_default_group_or_in_the_group(open_world: OpenWorld) -> None:
    open_world("default")

    def program(rank: int) -> Any:
        dist.init_process_group()
        group = dist.new_group([1, 3])
        if rank not in (1, 3):
            return None
        a, b = torch.full((1,), float(rank)), torch.full((1,), float(rank))
        dist.broadcast(a, src=3, group=group)
        dist.broadcast(b, group_src=1, group=group)
        c, d = torch.ones(1), torch.ones(1)
        dist.reduce(c, dst=1, group=group)
        dist.reduce(d, group_dst=0, group=group)
        return [t.item() for t in (a, b, c, d)]

    assert on_ranks(4, program) == [None, [3, 3, 2, 2], None, [3, 3, 1, 1]]


def test_groups_that_only_their_members_make(open_world: OpenWorld) -> None:
    """… need not be made in the same order by all."""
    open_world("default")

    def program(rank: int) -> Any:
        dist.init_process_group()
        mine = [rank // 2 * 2, rank // 2 * 2 + 1]
        sums = []
        for _ in range(rank // 2 + 1):
            sums.append(total(dist.new_group(mine, use_local_synchronization=True)))
        assert dist.new_group([1 - rank] if rank < 2 else [0], use_local_synchronization=True) is None
        return sums, dist.get_pg_count()

    assert on_ranks(4, program) == [([2], 1)] * 2 + [([2, 2], 1)] * 2


def test_an_empty_group(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> Any:
        dist.init_process_group()
        return dist.new_group([]), total(dist.new_group([0, 1]))

    assert on_ranks(2, program) == [(GroupMember.NON_GROUP_MEMBER, 2)] * 2


def test_ranks_that_disagree_about_a_group(open_world: OpenWorld) -> None:
    open_world("default")

    def program(rank: int) -> None:
        dist.init_process_group()
        dist.new_group([0, 1] if rank < 2 else [2, 3], group_desc="tp")

    found = failures(4, program)
    assert set(found) == {2, 3} and all(type(e) is MismatchError for e in found.values())
    site = f"{__file__}:{program.__code__.co_firstlineno + 2} in program"
    assert str(found[3]) == (
        "ranks 0 and 3 disagree on the members of process group 1 (tp):\n"
        f"  rank 0 makes it of ranks [0, 1] at {site}\n"
        f"  rank 3 makes it of ranks [2, 3] at {site}\n"
        "All ranks of the world, not only the members, must make the same groups in the same order."
    )


def test_one_group_object_for_all_ranks(open_world: OpenWorld) -> None:
    """A program without isolation has one variable for all ranks: each still has its own number in the group."""
    open_world("default")
    shared: list[Any] = [None]

    def program(rank: int) -> Any:
        dist.init_process_group()
        group = dist.new_group([0, 2, 3])
        if rank != 1:
            shared[0] = group
        dist.barrier()
        if rank == 1:
            with pytest.warns(UserWarning, match="on global rank 1 which does not belong to the given group"):
                assert dist.all_reduce(torch.ones(1), group=shared[0]) is None
            return dist.get_rank(shared[0])
        return dist.get_rank(shared[0]), total(shared[0])

    assert on_ranks(4, program) == [(0, 3), -1, (1, 3), (2, 3)]


def test_new_subgroups(open_world: OpenWorld) -> None:
    open_world("nodes2x8")

    def program(rank: int) -> Any:
        dist.init_process_group()
        node, nodes = dist.new_subgroups()
        pair, pairs = dist.new_subgroups(2, group_desc="pair")
        inner, _ = dist.new_subgroups(1, group=dist.group.WORLD)
        odd, odds = dist.new_subgroups_by_enumeration([[1, 5], [3, 2, 7]])
        assert (len(nodes), len(pairs), len(odds)) == (2, 8, 2)
        assert (node.size(), pair.size(), inner.size()) == (8, 2, 1)
        assert pair.group_desc == "pair" and pair in pairs and node is nodes[rank // 8]
        with pytest.raises(ValueError, match=r"The world size \(16\) must be divisible by 'group_size=3'"):
            dist.new_subgroups(3)
        return total(node), total(pair), dist.get_process_group_ranks(pair), odd and total(odd)

    ends = on_ranks(16, program)
    for rank, (node, pair, ranks, odd) in enumerate(ends):
        assert (node, pair, ranks) == (8, 2, [rank // 2 * 2, rank // 2 * 2 + 1])
        assert odd == {1: 2, 5: 2, 2: 3, 3: 3, 7: 3}.get(rank)


def test_split_group(open_world: OpenWorld) -> None:
    open_world("sips8")

    def program(rank: int) -> Any:
        dist.init_process_group("nccl", device_id=rank)
        half = dist.split_group(split_ranks=[[0, 1, 2, 3], [4, 5, 7]], group_desc="half")
        if rank == 6:
            assert half is None
            return None
        quarter = dist.split_group(half, [[2, 0]], timeout=timedelta(seconds=1))
        assert (half.group_desc, half.timeout) == ("half", timedelta(minutes=10))
        if half.rank() not in (0, 2):
            assert quarter is None
            return total(half)
        assert (quarter.group_desc, quarter.timeout) == ("half:split", timedelta(seconds=1))
        return total(half), total(quarter), dist.get_process_group_ranks(quarter)

    low, high = (4, 2, [0, 2]), (3, 2, [4, 7])
    assert on_ranks(8, program) == [low, 4, low, 4, high, 3, None, high]


def test_shrink_the_default_group(open_world: OpenWorld) -> None:
    open_world("default")

    def program(rank: int) -> Any:
        dist.init_process_group()
        pair = dist.new_group([0, 1])
        if rank == 1:
            return None
        old = dist.group.WORLD
        new = dist.shrink_group([1])
        assert new is dist.group.WORLD and new.group_desc == "default:shrunken"
        for gone in (old, pair) if rank == 0 else (old,):
            with pytest.raises(ValueError, match="is not initialized in the world group map"):
                dist.get_backend(gone)
        ends = dist.new_group([0, 2])  # by the new numbers
        sums = total(), rank != 2 and total(ends)
        return dist.get_rank(), dist.get_world_size(), dist.get_process_group_ranks(None), sums

    assert on_ranks(4, program) == [
        (0, 3, [0, 1, 2], (3, 2)), None, (1, 3, [0, 1, 2], (3, False)), (2, 3, [0, 1, 2], (3, 2)),
    ]  # fmt: skip


def test_shrink_another_group(open_world: OpenWorld) -> None:
    open_world("default")

    def program(rank: int) -> Any:
        dist.init_process_group()
        group = dist.new_group([1, 2, 3])
        if rank in (0, 2):
            return total()
        new = dist.shrink_group([1], group, dist.distributed_c10d.SHRINK_ABORT)
        assert new.group_desc == "1:shrunk" and dist.get_process_group_ranks(new) == [1, 3]
        return total(new), total()

    assert on_ranks(4, program) == [4, (2, 4), 4, (2, 4)]


def test_leaving_groups(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group()
        first, second = dist.new_group([0, 1]), dist.new_group([0, 1])
        dist.destroy_process_group(first)
        with pytest.raises(ValueError, match="Invalid process group specified"):
            dist.destroy_process_group(first)
        with pytest.raises(RuntimeError, match="Could not resolve the process group"):
            c10d._resolve_process_group("1")
        assert total(second) == 2
        second.shutdown()
        with pytest.raises(ValueError, match="Invalid process group specified: 2 was destroyed"):
            total(second)
        dist.destroy_process_group(GroupMember.NON_GROUP_MEMBER)
        dist.destroy_process_group(dist.group.WORLD)
        assert not dist.is_initialized()
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            dist.destroy_process_group()

    on_ranks(2, program)


def test_abort(open_world: OpenWorld) -> None:
    """Ranks that wait for one that aborts learn it; those that come later do too."""
    open_world("default")

    def program(rank: int) -> Any:
        dist.init_process_group()
        if rank == 0:
            dist.all_reduce(torch.ones(1), async_op=True)
            c10d._abort_process_group()
            return dist.is_initialized()
        with pytest.raises(dist.DistBackendError, match="rank 0 has aborted process group default"):
            total()
        return True

    assert on_ranks(4, program) == [False, True, True, True]


def test_ranks_that_are_not_in_the_group_of_their_parent(tmp_path: Path) -> None:
    text = """
        import torch.distributed as dist
        import torch.multiprocessing as mp

        def work(rank):
            assert dist.is_initialized() == (rank == 0)
            dist.init_process_group("gloo")
            print(dist.get_rank(), "of", dist.get_world_size())

        if __name__ == "__main__":
            dist.init_process_group("gloo")
            mp.spawn(work, nprocs=3)
            print(dist.get_rank(), "of", dist.get_world_size())
    """
    outcome = launch("--nproc-per-node", "1", "--topology", "default", written(tmp_path, text))
    assert lines(outcome) == ["0 of 1", "0 of 3", "1 of 3", "2 of 3"]


def test_groups_are_not_pickled(open_world: OpenWorld) -> None:
    open_world("sips2")

    def program(rank: int) -> None:
        dist.init_process_group()
        with pytest.raises(TypeError, match=r"cannot pickle 'torch\._C\._distributed_c10d\.ProcessGroup' object"):
            dist.all_gather_object([None, None], dist.group.WORLD)
        assert torch.cuda.manual_seed_all(1) is None  # type: ignore[func-returns-value]

    on_ranks(2, program)
