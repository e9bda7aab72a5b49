"""FSDP2 training of the installed PyTorch, with its own all-gather and with mori's: the losses are the same bits."""

import os

import mori
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.fsdp._fully_shard._fsdp_api import AllGather

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("cpu:gloo,cuda:nccl", rank=rank, world_size=world)
torch._C._distributed_c10d._register_process_group("default", dist.group.WORLD)
mori.shmem.shmem_torch_process_group_init("default")


class Gather(AllGather):
    """FSDP2's all-gather by mori."""

    def __init__(self) -> None:
        self.calls = 0
        self.handle = mori.ccl.HierAllGather(rank, world, 1 << 20, (1 << 20) * world, slice_min_bytes=0)

    def allocate(self, size, *, dtype, device):
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(self, output_tensor, input_tensor, group, async_op=False):
        self.calls += 1
        self.handle(input_tensor, output_tensor, input_tensor.numel(), torch.cuda.current_stream())
        return


def losses(custom: bool) -> tuple[list[float], int]:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8)).cuda()
    gathers = []
    for module in [*(m for m in model if isinstance(m, nn.Linear)), model]:
        fully_shard(module)
        if custom and isinstance(module, nn.Linear):
            gathers.append(Gather())
            module.set_custom_all_gather(gathers[-1])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    torch.manual_seed(10 + rank)
    found = []
    for _ in range(4):
        loss = model(torch.randn(12, 16, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.item())
    return found, sum(g.calls for g in gathers)


default, none = losses(False)
own, calls = losses(True)
assert none == 0 and calls >= 12, calls
assert default == own, (default, own)
print("equal losses")
