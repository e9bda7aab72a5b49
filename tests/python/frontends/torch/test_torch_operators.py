"""Collectives as dispatch modes and tensors' classes of a program see them: as operations, like those of PyTorch's own
process groups."""

import pytest
import torch
import torch.distributed as dist
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import torchemu

WORLD = 2

real = torchemu.distributed(world_size=WORLD, torch="real")


class Log(TorchDispatchMode):
    """Notes the collectives that it sees, and the shapes of their first tensors."""

    def __init__(self, gives=True):
        super().__init__()
        self.seen, self.gives = [], gives

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace != "c10d":
            return func(*args, **(kwargs or {}))
        first = next(leaf for leaf in tree_leaves(args) if isinstance(leaf, torch.Tensor))
        self.seen.append((func._opname, tuple(first.shape)))
        if self.gives:
            return func(*args, **(kwargs or {}))
        return args[0], dist.Work().boxed()


def joined(backend="gloo"):
    dist.init_process_group(backend)
    return dist.get_rank()


@pytest.mark.parametrize("place", ["cpu", "cuda"])
@real
def test_modes_see_collectives(place):
    rank = joined("cpu:gloo,cuda:nccl")
    torch.cuda.set_device(rank)
    mine, whole = torch.full((3,), rank + 1.0, device=place), torch.empty(6, device=place)
    parts = [torch.empty(3, device=place) for _ in range(WORLD)]
    with Log() as outer, Log() as log:
        dist.all_gather_into_tensor(whole, mine)
        dist.all_gather(parts, mine)
        dist.all_reduce(mine, async_op=True).wait()
        dist.reduce_scatter_tensor(mine, whole)
        dist.broadcast(mine, 1)
        dist.scatter(mine, parts if rank == 0 else None, 0)
        dist.gather(mine, parts if rank == 1 else None, 1)
        dist.all_to_all_single(torch.empty_like(whole), whole)
        (dist.recv if rank else dist.send)(mine, 1 - rank)
    assert log.seen == [
        ("_allgather_base_", (6,)),
        ("allgather_", (3,)),
        ("allreduce_", (3,)),
        ("_reduce_scatter_base_", (3,)),
        ("broadcast_", (3,)),
        ("scatter_", (3,)),
        ("gather_", (3,)),
        ("alltoall_base_", (6,)),
        ("recv_" if rank else "send", (3,)),
    ]
    assert outer.seen == log.seen
    assert whole.tolist() == [1.0] * 3 + [2.0] * 3
    assert mine.tolist() == [1.0] * 3


@real
def test_modes_give_results():
    mine = torch.full((3,), joined() + 1.0)
    with Log(gives=False) as log:
        dist.all_reduce(mine)
    assert log.seen == [("allreduce_", (3,))]
    assert mine.tolist() == [dist.get_rank() + 1.0] * 3


@pytest.mark.parametrize("place", ["cpu", "cuda"])
@real
def test_classes_see_collectives(place):
    rank = joined("cpu:gloo,cuda:nccl")
    torch.cuda.set_device(rank)
    mine = TwoTensor(torch.full((2,), rank + 1.0, device=place), torch.full((2,), 10.0 * rank, device=place))
    parts = [TwoTensor(torch.zeros(2, device=place), torch.zeros(2, device=place)) for _ in range(WORLD)]
    dist.all_gather(parts, mine)
    assert [part.a.tolist() for part in parts] == [[1.0, 1.0], [2.0, 2.0]]
    assert [part.b.tolist() for part in parts] == [[0.0, 0.0], [10.0, 10.0]]
    dist.all_reduce(mine)
    assert (mine.a.tolist(), mine.b.tolist()) == ([3.0, 3.0], [10.0, 10.0])
    dist.scatter(mine, parts if rank == 1 else None, 1)
    assert (mine.a.tolist(), mine.b.tolist()) == ([rank + 1.0] * 2, [10.0 * rank] * 2)
