# torchrun --nproc-per-node 4 ddp.py
"""Training as tutorials do it: DistributedDataParallel, DistributedSampler, Adam, a checkpoint, evaluation."""

import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def rows(n, seed):
    x = torch.rand(n, 5, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(x, (x.sum(1) > 2.5).long())


def evaluated(model, data):
    """The mean loss and the share of rows that are right, of all ranks' rows."""
    model.eval()
    sums = torch.zeros(3, dtype=torch.float64)
    with torch.no_grad():
        for x, y in DataLoader(data, batch_size=10, sampler=DistributedSampler(data, shuffle=False)):
            out = model(x)
            sums[0] += nn.functional.cross_entropy(out, y, reduction="sum")
            sums[1] += (out.argmax(1) == y).sum()
            sums[2] += len(x)
    dist.all_reduce(sums)
    model.train()
    return sums[0].item() / sums[2].item(), sums[1].item() / sums[2].item()


dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
model = DistributedDataParallel(model)  # all have rank 0's parameters now
train, test = rows(200, 1), rows(40, 2)
sampler = DistributedSampler(train, seed=7)
loader = DataLoader(train, batch_size=10, sampler=sampler)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for epoch in range(4):
    sampler.set_epoch(epoch)
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        if step == 0:
            with model.no_sync():
                loss.backward()
            loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    loss, right = evaluated(model, test)
    if rank == 0:
        print(f"epoch {epoch}: loss {loss:.3f}, right {right:.3f}")

path = [os.path.join(tempfile.mkdtemp(), "model.pt") if rank == 0 else None]
dist.broadcast_object_list(path)
if rank == 0:
    torch.save(model.state_dict(), path[0])
dist.barrier()
fresh = DistributedDataParallel(nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2)))
fresh.load_state_dict(torch.load(path[0], map_location="cpu"))
same = [None] * 4
dist.all_gather_object(same, evaluated(fresh, test) == evaluated(model, test))
if rank == 0:
    os.remove(path[0])
    os.rmdir(os.path.dirname(path[0]))
    print("loaded:", same, sorted(model.state_dict())[0])
dist.destroy_process_group()
