# python forked.py
"""Processes that are forked know what the program has done by then; what each changes is its own."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=3)
history = []


class Average(nn.Module):
    """A weight that ranks pull towards their numbers."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2))

    def forward(self, target):
        return ((self.weight - target) ** 2).sum()


def train(rank, size, answers):
    dist.init_process_group("gloo", rank=rank, world_size=size)
    for turn in range(options.rounds):
        optimizer.zero_grad()
        model(torch.full((2,), float(rank))).backward()
        dist.all_reduce(model.weight.grad)
        model.weight.grad /= size
        optimizer.step()
        history.append(turn)
    answers.put((rank, settings["name"], model.weight.tolist(), list(history)))
    settings["name"] = rank
    dist.destroy_process_group()


def elect(answers):
    dist.init_process_group("gloo")  # by the environment that it was started in
    votes = [None] * dist.get_world_size()
    dist.all_gather_object(votes, {"rank": dist.get_rank(), "wish": wish})
    answers.put((dist.get_rank(), [vote["wish"] for vote in votes]))


if __name__ == "__main__":
    options = parser.parse_args([])
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29731")
    model = Average()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.25)
    settings = {"name": "parent"}
    history.append("parent")
    fork = mp.get_context("fork")

    queue = fork.Queue()
    processes = [fork.Process(target=train, args=(rank, 3, queue)) for rank in range(3)]
    for process in processes:
        process.start()
    for answer in sorted(queue.get() for _ in processes):
        print(*answer)
    for process in processes:
        process.join()
    print([process.exitcode for process in processes], settings, history, model.weight.tolist())

    queue, processes = fork.Queue(), []
    os.environ["WORLD_SIZE"] = "2"
    for rank, drink in enumerate(["tea", "coffee"]):
        wish = drink
        os.environ["RANK"] = str(rank)
        processes.append(fork.Process(target=elect, args=(queue,)))
        processes[-1].start()
    for answer in sorted(queue.get() for _ in processes):
        print(*answer)
    for process in processes:
        process.join()

    mp.start_processes(lambda rank: history.append(rank), nprocs=2, start_method="fork")
    print(history)
