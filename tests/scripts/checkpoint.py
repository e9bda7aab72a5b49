# torchrun --nproc-per-node 4 checkpoint.py
"""Checkpoints: one file that rank 0 writes, and a file a rank that is read back by other numbers of ranks."""

import os
import shutil
import tempfile

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
folder = [tempfile.mkdtemp() if rank == 0 else None]
dist.broadcast_object_list(folder)
path = os.path.join(folder[0], "model.pt")


def said(*what):
    if rank == 0:
        print(*what, flush=True)


model = nn.Linear(4, 2)
with torch.no_grad():
    for p in model.parameters():
        p.fill_(rank + 1.0)
optimizer = torch.optim.Adam(model.parameters(), lr=0.5)
model(torch.ones(1, 4)).sum().backward()
optimizer.step()
if rank == 0:
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, path)
dist.barrier()

state = torch.load(path, map_location="cpu", weights_only=True)
print_order = sorted(state)
model.load_state_dict(state["model"])
optimizer.load_state_dict(state["optimizer"])
weights = [torch.empty(2, 4) for _ in range(size)]
dist.all_gather(weights, model.weight.detach())
said(print_order, state["epoch"], "equal:", all(torch.equal(w, weights[0]) for w in weights))
said([round(v, 4) for v in model.weight[0].tolist()], sorted(optimizer.state_dict()["state"]))
try:
    nn.Linear(4, 3).load_state_dict(state["model"])
except RuntimeError as error:
    said(str(error).splitlines()[0])

shard = torch.arange(6 * rank, 6 * rank + 6)
torch.save({"shard": shard, "rank": rank}, os.path.join(folder[0], f"shard{rank}.pt"))
dist.barrier()
half = dist.new_group([0, 1])
if rank < 2:
    parts = [torch.load(os.path.join(folder[0], f"shard{r}.pt"), weights_only=True) for r in (2 * rank, 2 * rank + 1)]
    mine = torch.cat([part["shard"] for part in parts])
    total = mine.sum()
    dist.all_reduce(total, group=half)
    both = [None, None]
    dist.all_gather_object(both, mine.tolist(), group=half)
    said(both, total.item())
dist.barrier()
if rank == 0:
    shutil.rmtree(folder[0])
dist.barrier()
said("files are gone:", not os.path.exists(path))
dist.destroy_process_group()
