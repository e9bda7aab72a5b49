"""Collectives of the installed PyTorch on a simulated cluster, against closed forms."""

import gc
from datetime import timedelta

import newer
import pytest
import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives

import torchemu
from torchemu.errors import DeadlockError, MismatchError

WORLD = 4

real = torchemu.distributed(world_size=WORLD, torch="real")
pytestmark = newer.names_of_before


def joined(backend="gloo"):
    """Joins the default group, and says which rank this is."""
    dist.init_process_group(backend)
    return dist.get_rank()


def pattern(rank, n):
    """Elements that differ between ranks and places, and whose sums are exact."""
    return torch.arange(n, dtype=torch.float32) * (rank + 1) + rank


def placed(tensor, backend):
    """Returns a tensor where a backend wants it: nccl on a device."""
    return tensor.cuda() if backend == "nccl" else tensor


def summed(n):
    return sum(pattern(r, n) for r in range(WORLD))


@pytest.mark.shows("PyTorch: collectives")
@pytest.mark.parametrize("backend", ["gloo", "nccl", "ahbm"])
@pytest.mark.parametrize("n", [0, 1, 7, 4096])
@real
def test_all_reduce(backend, n):
    rank = joined(backend)
    tensor = placed(pattern(rank, n), backend)
    dist.all_reduce(tensor)
    assert torch.equal(tensor.cpu(), summed(n))
    assert dist.get_backend() == backend


@real
def test_all_reduce_of_views():
    rank = joined()
    whole = pattern(rank, 24).reshape(4, 6)
    dist.all_reduce(whole.t()[1:3])
    expected = pattern(rank, 24).reshape(4, 6)
    expected[:, 1:3] = summed(24).reshape(4, 6)[:, 1:3]
    assert torch.equal(whole, expected)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("MAX", lambda list_: torch.stack(list_).amax(0)),
        ("MIN", lambda list_: torch.stack(list_).amin(0)),
        ("PRODUCT", lambda list_: torch.stack(list_).prod(0)),
        ("AVG", lambda list_: torch.stack(list_).mean(0)),
    ],
)
@real
def test_reduce_ops(op, expected):
    tensor = pattern(joined(), 5)
    dist.all_reduce(tensor, getattr(dist.ReduceOp, op))
    torch.testing.assert_close(tensor, expected([pattern(r, 5) for r in range(WORLD)]))


@real
def test_premul_sum():
    tensor = placed(pattern(joined("nccl"), 5), "nccl")
    dist.all_reduce(tensor, dist._make_nccl_premul_sum(0.5))
    assert torch.equal(tensor.cpu(), summed(5) * 0.5)


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.float16, torch.bfloat16, torch.float64])
@real
def test_dtypes(dtype):
    tensor = torch.full((3,), joined() + 1, dtype=dtype)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [WORLD * (WORLD + 1) // 2] * 3


@real
def test_gathers_and_scatters():
    rank = joined()
    blocks = [torch.empty(3) for _ in range(WORLD)]
    dist.all_gather(blocks, pattern(rank, 3))
    assert torch.equal(torch.stack(blocks), torch.stack([pattern(r, 3) for r in range(WORLD)]))
    together = torch.empty(WORLD * 3)
    dist.all_gather_into_tensor(together, pattern(rank, 3))
    assert torch.equal(together, torch.cat(blocks))
    part = torch.empty(2)
    dist.reduce_scatter_tensor(part, pattern(rank, 2 * WORLD))
    assert torch.equal(part, summed(2 * WORLD)[2 * rank : 2 * rank + 2])
    mine = torch.empty(1)
    dist.scatter(mine, list(torch.arange(WORLD, dtype=torch.float32).split(1)) if rank == 1 else None, src=1)
    assert mine.item() == rank
    dist.gather(mine, [torch.empty(1) for _ in range(WORLD)] if rank == 2 else None, dst=2)
    dist.broadcast(part, src=3)
    assert torch.equal(part, summed(2 * WORLD)[-2:])


@real
def test_all_to_all_with_splits():
    rank = joined()
    given = torch.full((sum(range(1, WORLD + 1)),), float(rank))
    out = torch.empty((rank + 1) * WORLD)
    dist.all_to_all_single(out, given, [rank + 1] * WORLD, list(range(1, WORLD + 1)))
    assert torch.equal(out, torch.arange(WORLD, dtype=torch.float32).repeat_interleave(rank + 1))


@pytest.mark.shows("PyTorch: collectives of objects")
@pytest.mark.shows("PyTorch: messages")
@real
def test_messages_and_objects():
    rank = joined()
    box = torch.empty(2)
    works = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, pattern(rank, 2), (rank + 1) % WORLD),
            dist.P2POp(dist.irecv, box, (rank - 1) % WORLD),
        ]
    )
    for work in works:
        work.wait()
    assert torch.equal(box, pattern((rank - 1) % WORLD, 2))
    told = [None] * WORLD
    dist.all_gather_object(told, {"rank": rank})
    assert told == [{"rank": r} for r in range(WORLD)]
    if rank:
        dist.send(torch.tensor([rank]), 0)
    else:
        seen = {dist.recv(torch.zeros(1, dtype=torch.int64)) for _ in range(WORLD - 1)}
        assert seen == {1, 2, 3}


@pytest.mark.shows("PyTorch: stores")
@pytest.mark.shows("PyTorch: groups")
@real
def test_groups_stores_and_futures():
    rank = joined()
    half = [dist.new_group([0, 1]), dist.new_group([2, 3])][rank // 2]
    tensor = torch.ones(2) * rank
    future = dist.all_reduce(tensor, group=half, async_op=True).get_future()
    doubled = future.then(lambda done: done.value()[0] * 2)
    assert torch.equal(doubled.wait(), torch.full((2,), [1.0, 5.0][rank // 2]) * 2)
    store = dist.PrefixStore("mine", dist.distributed_c10d._get_default_store())
    assert store.add("key", 1) in range(1, WORLD + 1)
    store.set(f"rank{rank}", str(rank))
    assert [store.get(f"rank{r}") for r in range(WORLD)] == [b"0", b"1", b"2", b"3"]
    with pytest.raises(dist.DistStoreError):
        store.wait(["never"], timedelta(seconds=1))
    dist.destroy_process_group()
    assert not dist.is_initialized()
    assert joined() == rank


@real
def test_gloo_refuses_what_gloo_refuses():
    joined()
    with pytest.raises(RuntimeError, match=r"invalid tensor size at index 0 \(expected \(4\), got \(2, 2\)\)"):
        dist.reduce_scatter(torch.zeros(4), [torch.zeros(2, 2) for _ in range(WORLD)])
    with pytest.raises(RuntimeError, match="Invalid scalar type"):
        numbers = torch.zeros(1, dtype=torch.complex64)
        dist.gather(numbers, [numbers.clone() for _ in range(WORLD)] if dist.get_rank() == 0 else None)


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
@real
def test_groups_have_the_names_of_earlier_ones_that_not_all_were_in(backend):
    rank = joined(backend)
    dist.new_group([1])
    dist.destroy_process_group()
    for turn in range(2):
        joined(backend)
        group = dist.new_group([0, 1, 3])
        tensor = placed(torch.tensor([rank + turn]), backend)
        if rank != 2:
            dist.all_reduce(tensor, group=group)
            assert tensor.item() == 4 + 3 * turn
        dist.destroy_process_group()


@real
def test_random_numbers_are_each_ranks_own():
    rank = joined()
    torch.manual_seed(rank)
    first = torch.rand(3)
    dist.barrier()
    second = torch.rand(3)
    torch.manual_seed(rank)
    assert torch.equal(torch.cat([first, second]), torch.rand(6))


def test_a_deadlock_names_the_call():
    @real
    def program():
        rank = joined()
        if rank != 2:
            dist.all_reduce(torch.ones(3))

    with pytest.raises(
        DeadlockError, match=r"ranks 0, 1 and 3 wait for all_reduce .*test_torch_c10d.py:\d+ in program"
    ):
        program()


def test_a_mismatch_names_both_sides():
    @real
    def program():
        dist.all_reduce(torch.ones(3 + joined() // 3))

    with pytest.raises(MismatchError, match=r"rank 3 calls all_reduce of 4 float32 elements"):
        program()


@pytest.mark.shows("PyTorch: timeouts")
@pytest.mark.parametrize("schedule", range(3))
def test_a_short_timeout_passes_in_simulated_time(schedule):
    @torchemu.distributed(world_size=2, torch="real", seed=schedule)
    def program():
        rank = joined()
        group = dist.new_group(timeout=torch.distributed.constants.timedelta(seconds=1))
        if rank == 0:
            with pytest.raises(RuntimeError, match=r"Timed out waiting 1000ms .*rank 1 has not joined it"):
                dist.all_reduce(torch.ones(1), group=group)

    program()


def _stores():
    """How many there are in this process."""
    gc.collect()
    return sum(issubclass(type(o), dist.Store) for o in gc.get_objects())


@real
def test_groups_that_all_have_left_take_their_stores_with_them():
    rank = joined()
    tensor = torch.ones(2)
    counts = []
    for _ in range(3):
        for _ in range(20):
            group = dist.new_group(list(range(WORLD)))
            dist.all_reduce(tensor, dist.ReduceOp.MAX, group=group)
            dist.destroy_process_group(group)
        del group
        dist.barrier()
        if rank == 0:
            counts.append(_stores())
        dist.barrier()
    assert rank or counts[2] <= counts[0], counts
    kept = dist.new_group(list(range(WORLD)))
    gc.collect()
    kept.get_group_store().set(str(rank), "here")  # which the group keeps while it is there
    assert kept.get_group_store().get(str((rank + 1) % WORLD)) == b"here"


@torchemu.distributed(world_size=2, torch="real")
@pytest.mark.parametrize("post", [dist.irecv, dist.isend])
def test_a_message_that_was_waited_for_too_long_is_given_up(post):
    """Gloo closes the connections of a group then; the program may catch the error, and ends as any other does."""
    rank = joined()
    if rank == 0:
        work = post(torch.ones(1), 1)
        with pytest.raises(RuntimeError, match="Timed out waiting 200ms"):
            work.wait(timedelta(milliseconds=200))
        with pytest.raises(RuntimeError, match="rank 0 has aborted process group"):
            work.wait()


@torchemu.distributed(world_size=2, torch="real")
@pytest.mark.parametrize("backend", ["gloo", "nccl"])
def test_collectives_under_way_are_waited_for_by_their_tensors(backend):
    """A compiled function waits so for what was issued before it was called."""
    rank = joined(backend)
    x, gathered = torch.full((2,), rank + 1.0), torch.zeros(4)
    if backend == "nccl":
        x, gathered = x.to(rank), gathered.to(rank)
    with _functional_collectives.allow_inflight_collective_as_graph_input_ctx():
        works = [dist.all_gather_into_tensor(gathered, x, async_op=True), dist.all_reduce(x, async_op=True)]
    found = [torch.ops._c10d_functional.wait_tensor(t).tolist() for t in (gathered, x)]
    assert found == [[1.0, 1.0, 2.0, 2.0], [3.0, 3.0]] and len(works) == 2
