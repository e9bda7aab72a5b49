# torchrun --nproc-per-node 2 accumulation.py
"""Data parallelism by hand: gradients are accumulated over micro-batches, averaged once a step, and clipped."""

import torch
import torch.distributed as dist
from torch import nn

STEPS, MICRO_BATCHES, ROWS = 6, 3, 4


def batch(step, micro, rank):
    """Rows that every process can make: those of one step and rank."""
    numbers = torch.arange(ROWS * 3, dtype=torch.float32).reshape(ROWS, 3)
    x = torch.sin(numbers + 5 * step + 2 * micro + 11 * rank)
    return x, (2 * x[:, :1] - x[:, 1:2] * x[:, 2:]).detach()


def model_of_constants():
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    with torch.no_grad():
        for k, p in enumerate(model.parameters()):
            p.copy_(0.3 * torch.cos(torch.arange(p.numel(), dtype=torch.float32) + k).reshape(p.shape))
    return model


def averaged(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


dist.init_process_group("gloo")
rank = dist.get_rank()
model = model_of_constants()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)
for step in range(STEPS):
    optimizer.zero_grad()
    total = torch.zeros(())
    for micro in range(MICRO_BATCHES):
        x, y = batch(step, micro, rank)
        loss = nn.functional.mse_loss(model(x), y) / MICRO_BATCHES
        loss.backward()
        total += loss.detach()
    averaged(model)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    scheduler.step()
    dist.all_reduce(total)
    if rank == 0:
        print(f"step {step}: loss {total.item() / 2:.4f}, norm {norm.item():.4f}, lr {scheduler.get_last_lr()[0]:.4f}")

model.eval()
with torch.no_grad():
    mine = torch.cat([p.flatten() for p in model.parameters()])
    theirs = [torch.empty_like(mine) for _ in range(2)]
    dist.all_gather(theirs, mine)
    if rank == 0:
        print("all have the same parameters:", torch.equal(*theirs))
        print([round(v, 3) for v in mine[:6].tolist()])
dist.destroy_process_group()
