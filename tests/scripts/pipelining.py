# torchrun --nproc-per-node 4 pipelining.py
"""torch.distributed.pipelining: a model in stages, by each schedule, with the losses and gradients of the whole."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleLoopedBFS,
)

WIDTH, BATCH = 6, 16


def blocks(count):
    torch.manual_seed(0)
    return [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(count)]


def loss_of(output, target):
    return nn.functional.mse_loss(output, target)


def trained(schedule, parts, inputs, targets):
    optimizer = torch.optim.SGD([p for part in parts for p in part.parameters()], lr=0.5, momentum=0.9)
    rank, size = dist.get_rank(), dist.get_world_size()
    history = []
    for _ in range(3):
        optimizer.zero_grad()
        losses = []
        if rank == 0:
            schedule.step(inputs)
        elif rank == size - 1:
            output = schedule.step(target=targets, losses=losses)
            history.append(f"{torch.stack(losses).mean().item():.5f} {tuple(output.shape)} {len(losses)}")
        else:
            schedule.step()
        optimizer.step()
    return history


def whole(count, inputs, targets):
    model = nn.Sequential(*blocks(count))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(model(inputs), targets).backward()
        optimizer.step()
    return model


def compared(mine, theirs):
    furthest = max((p - q).abs().max().item() for p, q in zip(mine.parameters(), theirs.parameters(), strict=True))
    return furthest < 1e-6


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    generator = torch.Generator().manual_seed(1)
    inputs, targets = (torch.randn(BATCH, WIDTH, generator=generator) for _ in range(2))
    for make, per_rank, microbatches in (
        (ScheduleGPipe, 1, 4),
        (Schedule1F1B, 1, 8),
        (ScheduleInterleaved1F1B, 2, 8),
        (ScheduleLoopedBFS, 2, 4),
    ):
        count = size * per_rank
        layers = blocks(count)
        mine = list(range(rank, count, size))
        stages = [PipelineStage(layers[i], i, count, torch.device("cpu")) for i in mine]
        given = stages[0] if per_rank == 1 else stages
        schedule = make(given, microbatches, loss_fn=loss_of)
        history = trained(schedule, [layers[i] for i in mine], inputs, targets)
        reference = whole(count, inputs, targets)
        right = [compared(layers[i], reference[i]) for i in mine]
        for turn in range(size):
            if turn == rank:
                print(make.__name__, rank, mine, right, *history, sep=" | ", flush=True)
            dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
