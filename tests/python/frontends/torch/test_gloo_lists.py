"""Lists of tensors that a rank gives to the groups of gloo: values by enumeration, and refusals in the words that
processes of gloo were seen to use."""

import itertools

import pytest
import torch
import torch.distributed as dist

import torchemu

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks")

pair = torchemu.distributed(world_size=2, torch="real", check=False)
trio = torchemu.distributed(world_size=3, torch="real")


def group():
    dist.init_process_group("gloo")
    return dist.group.WORLD


def ones(dtype=torch.float32, size=1):
    return torch.zeros(size, dtype=dtype)


def sparse(size):
    return torch.sparse_coo_tensor([[0]], [1], size=(size,))


def optioned(kind, **values):
    options = kind()
    for name, value in values.items():
        setattr(options, name, value)
    return options


def broadcast(tensors, root, number):
    return dist.group.WORLD.broadcast(tensors, optioned(dist.BroadcastOptions, rootRank=root, rootTensor=number))


def reduce(tensors, root, number=0):
    return dist.group.WORLD.reduce(tensors, optioned(dist.ReduceOptions, rootRank=root, rootTensor=number))


def scatter(outs, ins, root):
    return dist.group.WORLD.scatter(outs, ins, optioned(dist.ScatterOptions, rootRank=root))


def gather(outs, ins, root):
    return dist.group.WORLD.gather(outs, ins, optioned(dist.GatherOptions, rootRank=root))


def all_reduce(tensors, op=dist.ReduceOp.SUM):
    return dist.group.WORLD.allreduce(tensors, optioned(dist.AllreduceOptions, reduceOp=op))


def coalesced(tensors):
    return dist.group.WORLD.allreduce_coalesced(tensors, dist.AllreduceCoalescedOptions())


def all_gather(outs, ins):
    return dist.group.WORLD.allgather(outs, ins)


def all_gather_coalesced(outs, ins):
    return dist.group.WORLD.allgather_coalesced(outs, ins)


def reduce_scatter(outs, ins):
    return dist.group.WORLD.reduce_scatter(outs, ins)


t1, t2, t3, double = ones(), ones(), ones(size=2), ones(torch.float64)
TYPES = (
    "(expected TensorOptions(dtype=float, device=cpu, layout=Strided, requires_grad=false (default), "
    "pinned_memory=false (default), memory_format=(nullopt)), got TensorOptions(dtype=double, device=cpu, "
    "layout=Strided, requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt)))"
)

REFUSED = [
    (lambda me: broadcast([t1], -1, 0), "broadcast: invalid root rank: -1"),
    (lambda me: broadcast([t1], me, -1), "broadcast: invalid root tensor: -1"),
    (lambda me: broadcast([t1], me, 1), "broadcast: invalid root tensor: 1"),
    (lambda me: broadcast([t1], 1 - me, 1), "broadcast: invalid root tensor: 1"),
    (lambda me: broadcast([t1, double], me, 0), f"broadcast: invalid tensor type at index 0 {TYPES}"),
    (lambda me: broadcast([t1, t3], me, 0), "broadcast: invalid tensor size at index 0 (expected (1), got (2))"),
    (lambda me: reduce([t1], me, 1), "reduce: invalid root tensor: 1"),
    (lambda me: reduce([t1], 1 - me, -1), "reduce: invalid root tensor: -1"),
    (lambda me: reduce([t1, t1], me), "reduce: requires a single-element tensor list"),
    (
        lambda me: all_reduce([t1, sparse(1)]),
        "allreduce: invalid tensor layout at index 1 (expected Strided, got Sparse)",
    ),
    (
        lambda me: all_reduce([sparse(1), t1]),
        "allreduce: invalid tensor layout at index 1 (expected Sparse, got Strided)",
    ),
    (
        lambda me: all_reduce([sparse(1), sparse(4)]),
        "allreduce: invalid tensor size at index 0 (expected (1), got (4))",
    ),
    (
        lambda me: all_reduce([sparse(4)], dist.ReduceOp.MAX),
        "allreduce: unsupported reduction operation (allreduce of sparse tensors only works with ReduceOp.SUM)",
    ),
    (lambda me: coalesced([t1, double]), "allreduce_coalesced: tensors must all have the same type"),
    (lambda me: scatter([t1, t1], [], 0), "scatter: requires a single-element output tensor list"),
    (
        lambda me: scatter([t1], [], me),
        "scatter: requires a single-element input list containing a list with 2 tensors",
    ),
    (
        lambda me: scatter([t1], [[t1, t1], [t1, t1]], me),
        "scatter: requires a single-element input list containing a list with 2 tensors",
    ),
    (
        lambda me: scatter([t1], [[t1]], me),
        "scatter: Incorrect input list size 1. Input list size should be 2, same as size of the process group.",
    ),
    (lambda me: scatter([t1], [[t1, t1]], 1 - me), "scatter: requires empty input on non-root"),
    (lambda me: gather([], [t1, t1], 0), "gather: requires a single-element input tensor list"),
    (
        lambda me: gather([], [t1], me),
        "gather: requires a single-element output list containing a list with 2 tensors.",
    ),
    (lambda me: gather([[t1, t1]], [t1], 1 - me), "gather: requires empty output on non-root"),
    (lambda me: all_gather([], [t1]), "allgather: requires input/output tensor lists to have the same length"),
    (
        lambda me: all_gather([[t1, t1]] * 2, [t1, t1]),
        "allgather: invalid output tensor list at index 0 (expected length 4, got 2)",
    ),
    (lambda me: all_gather([[t1] * 4] * 2, [t1, double]), f"allgather: invalid tensor type at index 1 {TYPES}"),
    (
        lambda me: all_gather([[t1] * 4] * 2, [t1, t3]),
        "allgather: invalid tensor size at index 1 (expected (1), got (2))",
    ),
    (
        lambda me: all_gather_coalesced([[ones(size=0)], [t1]], [t1]),
        "allgather_coalesced: invalid size of output tensor at index 0 (expected length (1), got (0))",
    ),
    (
        lambda me: all_gather_coalesced([[double], [t1]], [t1]),
        "allgather_coalesced: invalid tensor type at index 0 (expected torch.FloatTensor, got torch.DoubleTensor)",
    ),
    (
        lambda me: all_gather_coalesced([[t1, t2], [t1, t3]], [t1, t1]),
        "allgather_coalesced: invalid size of output tensor at index 1 (expected length (1), got (2))",
    ),
    (
        lambda me: all_gather_coalesced([[t1, t1], [t1]], [t1]),
        "allgather_coalesced: invalid output size: (expected length 1, got 2)",
    ),
]


@pytest.mark.parametrize(("call", "text"), REFUSED, ids=[text for _, text in REFUSED])
@pair
def test_refusals(call, text):
    me = group().rank()
    with pytest.raises(RuntimeError) as raised:
        call(me)
    assert str(raised.value).splitlines()[0] == f"ProcessGroupGloo::{text}"


@pair
def test_several_outputs_are_not_scattered():
    group()
    with pytest.raises(RuntimeError, match="reduce_scatter only supports 1 output"):
        reduce_scatter([t1, t1], [[t1, t1], [t1, t1]])


@pair
def test_gloo_reduces_nothing_of_devices_as_one_operation():
    group()
    with pytest.raises(RuntimeError, match="ProcessGroupGloo::allreduce_coalesced: unsupported device type cuda"):
        coalesced([t1.cuda(), t1.cuda()])


def brought(rank, number, length):
    """Returns what a rank brings as its tensor of a number: no two elements are the same."""
    return torch.arange(float(length)) + 1000 * rank + 100_000 * number


@pytest.mark.parametrize(("several", "length"), list(itertools.product((1, 2, 3), (0, 1, 7))))
@trio
def test_every_list_gets_what_each_rank_brings(several, length):
    world = group()
    me = world.rank()
    outs = [[torch.full((length,), -1.0) for _ in range(3 * several)] for _ in range(several)]
    work = world.allgather(outs, [brought(me, number, length) for number in range(several)])
    work.wait()
    expected = [brought(rank, number, length) for rank in range(3) for number in range(several)]
    for row in outs:
        assert all(torch.equal(out, want) for out, want in zip(row, expected, strict=True))
    found = work.get_future().wait()
    for row in [found] if several == 1 else found:
        assert all(torch.equal(out, want) for out, want in zip(row, expected, strict=True))


@pytest.mark.parametrize(("root", "number"), list(itertools.product(range(3), range(2))))
@trio
def test_all_tensors_are_the_roots_one(root, number):
    me = group().rank()
    tensors = [brought(me, i, 5) for i in range(2)]
    future = broadcast(tensors, root, number).get_future()
    future.wait()
    for tensor in (*tensors, *future.value()):
        assert torch.equal(tensor, brought(root, number, 5))
    assert len(future.value()) == 2


@pytest.mark.parametrize("several", [1, 2, 3])
@trio
def test_sparse_tensors_are_added_over_lists_and_ranks(several):
    me = group().rank()

    def given(rank, number):
        dense = torch.zeros(6, 2)
        dense[(rank + number) % 6] = torch.tensor([1.0 + rank, 10.0 + number])
        return dense

    tensors = [given(me, number).to_sparse(1) for number in range(several)]
    work = all_reduce(tensors)
    work.wait()
    expected = sum(given(rank, number) for rank in range(3) for number in range(several))
    for tensor in (*tensors, *work.get_future().wait()):
        assert torch.equal(tensor.to_dense(), expected)
        assert tensor.coalesce().indices().tolist() == [sorted({(r + n) % 6 for r in range(3) for n in range(several)})]
