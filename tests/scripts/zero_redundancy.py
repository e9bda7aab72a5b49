# torchrun --nproc-per-node 3 zero_redundancy.py
"""ZeroRedundancyOptimizer: the same training as with the whole optimizer, its states gathered, saved and loaded."""

import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817


def batch(number):
    return (torch.arange(24.0).reshape(4, 6) * (number + 1) * 0.1).sin()


def model():
    torch.manual_seed(0)
    return DDP(nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 6), nn.Linear(6, 2, bias=False)))


def digest(parameters):
    return " ".join(f"{p.detach().double().sum().item():.4f}" for p in parameters)


def train(net, optimizer, batches):
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    for number in batches:
        optimizer.zero_grad()
        net(batch(number * dist.get_world_size() + dist.get_rank())).square().mean().backward()
        optimizer.step()
        schedule.step()
    return digest(net.parameters()), f"{optimizer.param_groups[0]['lr']:.4f}"


def say(*words):
    if dist.get_rank() == 0:
        print(*words)


def compare():
    net = model()
    say("whole  ", *train(net, torch.optim.Adam(net.parameters(), lr=0.01), range(5)))
    net = model()
    optimizer = ZeroRedundancyOptimizer(net.parameters(), optimizer_class=torch.optim.Adam, lr=0.01)
    say("divided", *train(net, optimizer, range(5)))
    mine = torch.tensor([p.numel() for group in optimizer.optim.param_groups for p in group["params"]])
    sizes = [None] * dist.get_world_size()
    dist.all_gather_object(sizes, mine.tolist())
    say("elements of each rank", sizes)
    return net, optimizer


def save_and_load(net, optimizer, file):
    try:
        optimizer.state_dict()
    except RuntimeError as error:
        say("RuntimeError", str(error).split(".")[0])
    optimizer.consolidate_state_dict(to=0)
    if dist.get_rank() == 0:
        state = optimizer.state_dict()
        torch.save(state, file)
        print("states", {number: int(each["step"]) for number, each in state["state"].items()})
        print("groups", [(round(group["lr"], 4), group["params"]) for group in state["param_groups"]])
    dist.barrier()
    other = ZeroRedundancyOptimizer(net.parameters(), optimizer_class=torch.optim.Adam, lr=9.0)
    other.load_state_dict(torch.load(file))
    net(batch(dist.get_rank())).square().mean().backward()
    other.step()
    say("went on", digest(net.parameters()), round(other.param_groups[0]["lr"], 4))


def groups():
    first = [nn.Parameter(torch.full((n,), float(n))) for n in (4, 1, 2)]
    second = [nn.Parameter(torch.full((3,), 3.0))]
    options = [{"params": first, "lr": 0.1}, {"params": second, "momentum": 0.9}]
    optimizer = ZeroRedundancyOptimizer(options, torch.optim.SGD, lr=0.5)
    later = nn.Parameter(torch.full((2,), 7.0))
    optimizer.add_param_group({"params": [later], "lr": 0.25})
    for _ in range(2):
        for p in (*first, *second, later):
            p.grad = torch.ones_like(p)
        optimizer.step()
    say("groups", [round(p[0].item(), 4) for p in (*first, *second, later)])


def main():
    dist.init_process_group("gloo")
    net, optimizer = compare()
    name = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(name)
    save_and_load(net, optimizer, os.path.join(name[0], "optimizer.pt"))
    groups()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
