"""Memory that devices have in use, beside what PyTorch says on H200s."""

import gc

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

import torchemu

MEBIBYTE = 1 << 20


def in_use():
    torch.cuda.synchronize()
    gc.collect()
    return torch.cuda.memory_allocated() / MEBIBYTE


@torchemu.distributed(world_size=2, torch="real")
def test_fully_shard_gives_back_what_it_gathers():
    """Two H200s have 65 MiB more in use once they have multiplied matrices: cuBLAS's workspaces."""
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024)).cuda()
    assert in_use() == 8.0078125
    for layer in (model[0], model[2], model):
        fully_shard(layer)
    assert in_use() == 4.00390625
    x = torch.ones(4, 1024, device="cuda")
    for _ in range(3):
        y = model(x)
        assert in_use() == 4.05078125
        y.sum().backward()
        del y
        assert in_use() == 8.0234375
        model.zero_grad()
        assert in_use() == 4.01953125
