"""NCCL's check for NaN: it is of what a rank gives, also where that is replaced, and not of what it is to receive."""

import pytest
import torch
import torch.distributed as dist

import torchemu

pair = torchemu.distributed(world_size=2, torch="real", check=False)
WRONG, RIGHT = float("nan"), 1.0


def joined():
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    group = dist.group.WORLD
    group._get_backend(torch.device("cuda"))._set_enable_nan_check(True)
    return dist.get_rank(), group


def filled(value, n=3):
    return torch.full((n,), value, device="cuda")


GIVEN = {
    "all_reduce": lambda x, group: group.allreduce([x]),
    "all_gather": lambda x, group: group.allgather([[filled(WRONG), filled(WRONG)]], [x]),
    "reduce_scatter_tensor": lambda x, group: group._reduce_scatter_base(filled(WRONG, 1), torch.cat([x, x])[:2]),
    "all_to_all": lambda x, group: group.alltoall([filled(WRONG), filled(WRONG)], [x, x]),
}


@pytest.mark.parametrize("operation", GIVEN)
@pair
def test_what_a_rank_gives(operation):
    _, group = joined()
    with pytest.raises(RuntimeError, match="NaN found in input tensor"):
        GIVEN[operation](filled(WRONG), group)
    GIVEN[operation](filled(RIGHT), group).wait()


@pytest.mark.parametrize("value", [WRONG, RIGHT])
@pair
def test_a_broadcast_and_a_reduction(value):
    rank, group = joined()
    x = filled(value if rank == 0 else WRONG)
    if rank == 0 and value != value:
        with pytest.raises(RuntimeError, match="NaN found in input tensor"):
            group.broadcast([x])
        return
    if value == value:
        group.broadcast([x]).wait()
        assert x.tolist() == [RIGHT] * 3
        group.reduce([x]).wait()
        assert rank or x.tolist() == [2.0] * 3
        with pytest.raises(RuntimeError, match="NaN found in input tensor"):
            group.reduce([filled(WRONG)])
