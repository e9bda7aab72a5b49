"""Trains a few layers with FSDP2, whose all-gathers mori does with copy engines and network cards, beside the products.

    MORI_ENABLE_SDMA=1 torchemu run --torch real --no-data --nnodes 2 --nproc-per-node 4 --topology mi355x_2x4 \\
        benches/mori_fsdp2.py [--default]

It prints the time of a step, in milliseconds of simulated time; --default leaves the gathers to the backend. It runs
wherever mori and FSDP2 do. Without --no-data a rank needs 2 GiB.
"""

from __future__ import annotations

import os
import sys

import mori
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp._fully_shard._fsdp_api import AllGather

LAYERS, WIDTH, ROWS = 4, 8192, 8192
SHARD_BYTES = 2 * 2 * WIDTH * WIDTH


class HierGather(AllGather):
    """FSDP2's all-gather by mori: on the stream on which FSDP2 calls it."""

    def __init__(self, rank: int, world: int) -> None:
        self.handle = mori.ccl.HierAllGather(rank, world, SHARD_BYTES // world, SHARD_BYTES)

    def allocate(self, size, *, dtype, device):
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(self, output_tensor, input_tensor, group, async_op=False):
        self.handle(input_tensor, output_tensor, input_tensor.numel(), torch.cuda.current_stream())


def sharded(rank: int, world: int, custom: bool) -> nn.Module:
    """Returns the layers, each sharded by itself."""
    with torch.device("cuda"):
        layers = [
            nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False))
            for _ in range(LAYERS)
        ]
    model = nn.Sequential(*layers)
    gather = HierGather(rank, world) if custom else None
    for layer in layers:
        fully_shard(layer, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32))
        if gather is not None:
            layer.set_custom_all_gather(gather)
    return fully_shard(model)


def main() -> None:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl")
    torch._C._distributed_c10d._register_process_group("default", dist.group.WORLD)
    mori.shmem.shmem_torch_process_group_init("default")
    model = sharded(rank, world, "--default" not in sys.argv)
    x = torch.empty(ROWS, WIDTH, dtype=torch.bfloat16, device="cuda")
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for event in (start, end):
        event.record()
        model(x).sum().backward()
    torch.cuda.synchronize()
    if rank == 0:
        print(f"{start.elapsed_time(end):.2f} ms a step")


main()
