"""Computes metrics of torchmetrics over the ranks' parts of some data, and over all of it."""

import os

import torch
import torch.distributed as dist
import torchmetrics
from torchmetrics.classification import BinaryAUROC, MulticlassConfusionMatrix


def main():
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    numbers = torch.linspace(0, 7, 90, device=device).sin().abs()
    target = (torch.arange(90, device=device) * 7 % 10 > 4).long()
    mine = slice(rank * 90 // world, (rank + 1) * 90 // world - rank)  # parts of several lengths
    kept = torch.cat([torch.arange(90)[r * 90 // world : (r + 1) * 90 // world - r] for r in range(world)]).to(device)
    found = []
    for metric, given in (
        (torchmetrics.MeanMetric(), (numbers,)),
        (torchmetrics.MeanSquaredError(), (numbers, target.float())),
        (BinaryAUROC(), (numbers, target)),
        (MulticlassConfusionMatrix(2), ((numbers > 0.5).long(), target)),
        (torchmetrics.CatMetric(), (numbers,)),
    ):
        metric = metric.to(device)
        metric.update(*(t[mine] for t in given))
        together = metric.compute()
        classes = {"num_classes": 2} if isinstance(metric, MulticlassConfusionMatrix) else {}
        alone = type(metric)(**classes, sync_on_compute=False).to(device)
        alone.update(*(t[kept] for t in given))
        torch.testing.assert_close(together, alone.compute())
        found.append(together.double().sum().item())
    if rank == 0:
        print("losses", *found)
    dist.destroy_process_group()


main()
