"""Hierarchical all-gathers with a mistake planted in their programs: PLANTED says which."""

import os

import mori
import torch
import torch.distributed as dist

from torchemu.bridge.binding import go
from torchemu.frontends.mori import _subgroups
from torchemu.frontends.mori._schedules import Gathering

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("cpu:gloo,cuda:nccl", rank=rank, world_size=world)
torch._C._distributed_c10d._register_process_group("default", dist.group.WORLD)
mori.shmem.shmem_torch_process_group_init("default")


class Hasty(Gathering):
    """Takes what the ring brings without waiting for its word, as if the last call's were this one's."""

    def ring_step(self, p, step, span):
        wait, p.wait = p.wait, lambda *_: None
        super().ring_step(p, step, span)
        p.wait = wait


class Clearing(Gathering):
    """Counts no calls: words are 1 where something has landed, and are cleared at the end."""

    def tick(self, part=0):
        return 1

    def leave(self, p):
        for pe in range(self.shape.world):
            p.call(go.PrimSignal, self.words.gathered(self.pe, pe), 8, 1, 0)
        super().leave(p)


count, side = 5000, torch.cuda.Stream()
x, out = torch.full((count,), float(rank), device="cuda"), torch.zeros(count * world, device="cuda")
if os.environ["PLANTED"] == "hasty":
    mori.ccl.HierAllGather._launch.__globals__["Gathering"] = Hasty
    gather = mori.ccl.HierAllGather(rank, world, 1 << 16, (1 << 16) * world, slice_min_bytes=0)
    for _ in range(3):
        gather(x, out, count, side)
else:
    _subgroups.Gathering = Clearing
    count = 1000
    gather = mori.ccl.IntraNodeSubGroupAllgatherSdma(rank, world, 1 << 16)
    for _ in range(3):
        gather(x, out, count, barrier=False, prepare_barrier=False)
torch.cuda.synchronize()
