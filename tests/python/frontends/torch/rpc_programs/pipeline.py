"""A pipeline of two workers for a model, in micro-batches, in the shape of PyTorch's tutorial."""

import os
import threading
from itertools import pairwise

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
from torch import nn, optim
from torch.distributed.optim import DistributedOptimizer
from torch.distributed.rpc import RRef


class Shard(nn.Module):
    def __init__(self, seed, *sizes):
        super().__init__()
        self._lock = threading.Lock()
        torch.manual_seed(seed)
        layers = [nn.Sequential(nn.Linear(i, o), nn.ReLU(inplace=True)) for i, o in pairwise(sizes)]
        self.seq = nn.Sequential(*layers)

    def forward(self, x_rref):
        x = x_rref.to_here()
        with self._lock:
            out = self.seq(x)
        return out.cpu()

    def parameter_rrefs(self):
        return [RRef(p) for p in self.parameters()]


class DistModel(nn.Module):
    def __init__(self, split_size, workers):
        super().__init__()
        self.split_size = split_size
        self.p1_rref = rpc.remote(workers[0], Shard, args=(1, 12, 16, 16))
        self.p2_rref = rpc.remote(workers[1], Shard, args=(2, 16, 16, 4))

    def forward(self, xs):
        out_futures = []
        for x in iter(xs.split(self.split_size, dim=0)):
            y_rref = self.p1_rref.remote().forward(RRef(x))
            out_futures.append(self.p2_rref.rpc_async().forward(y_rref))
        return torch.cat(torch.futures.wait_all(out_futures))

    def parameter_rrefs(self):
        return [*self.p1_rref.remote().parameter_rrefs().to_here(), *self.p2_rref.remote().parameter_rrefs().to_here()]


def run_master(split_size):
    model = DistModel(split_size, ["worker1", "worker2"])
    loss_fn = nn.MSELoss()
    opt = DistributedOptimizer(optim.SGD, model.parameter_rrefs(), lr=0.2)
    generator = torch.Generator().manual_seed(4)
    for step in range(3):
        inputs = torch.randn(12, 12, generator=generator)
        labels = torch.rand(12, 4, generator=generator)
        with dist_autograd.context() as context_id:
            outputs = model(inputs)
            loss = loss_fn(outputs, labels)
            dist_autograd.backward(context_id, [loss])
            opt.step(context_id)
        print(f"split {split_size}, step {step}: {loss.item():.5f}")


def run_worker(rank, world_size):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", os.environ["PROGRAM_PORT"]
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=64, rpc_timeout=300)
    name = f"worker{rank}" if rank else "master"
    rpc.init_rpc(name, rank=rank, world_size=world_size, rpc_backend_options=options)
    if rank == 0:
        for split_size in (2, 4, 12):
            run_master(split_size)
    rpc.shutdown()


if __name__ == "__main__":
    mp.spawn(run_worker, args=(3,), nprocs=3, join=True)
