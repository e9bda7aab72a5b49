"""A parameter server, whose trainers hold references to its model, in the shape of PyTorch's tutorial."""

import os
from threading import Lock

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
from torch import nn, optim
from torch.distributed.optim import DistributedOptimizer
from torch.nn import functional


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc1, self.fc2 = nn.Conv2d(1, 4, 3), nn.Linear(4 * 13 * 13, 16), nn.Linear(16, 10)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.conv(x)), 2)
        return functional.log_softmax(self.fc2(functional.relu(self.fc1(torch.flatten(x, 1)))), dim=1)


def call_method(method, rref, *args, **kwargs):
    return method(rref.local_value(), *args, **kwargs)


def remote_method(method, rref, *args, **kwargs):
    return rpc.rpc_sync(rref.owner(), call_method, args=[method, rref, *args], kwargs=kwargs)


class ParameterServer(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.model = Net()

    def forward(self, inp):
        return self.model(inp).to("cpu")

    def get_dist_gradients(self, cid):
        grads = dist_autograd.get_gradients(cid)
        return {k.to("cpu"): v.to("cpu") for k, v in grads.items()}

    def get_param_rrefs(self):
        return [rpc.RRef(param) for param in self.model.parameters()]


param_server = None
global_lock = Lock()


def get_parameter_server():
    global param_server
    with global_lock:
        if not param_server:
            param_server = ParameterServer()
        return param_server


class TrainerNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.param_server_rref = rpc.remote("parameter_server", get_parameter_server)

    def get_global_param_rrefs(self):
        return remote_method(ParameterServer.get_param_rrefs, self.param_server_rref)

    def forward(self, x):
        return remote_method(ParameterServer.forward, self.param_server_rref, x)


def train(rank):
    net = TrainerNet()
    opt = DistributedOptimizer(optim.SGD, net.get_global_param_rrefs(), lr=0.03)
    generator = torch.Generator().manual_seed(rank)
    for step in range(3):
        data = torch.randn(8, 1, 28, 28, generator=generator)
        target = torch.randint(0, 10, (8,), generator=generator)
        with dist_autograd.context() as cid:
            loss = functional.nll_loss(net(data), target)
            dist_autograd.backward(cid, [loss])
            found = remote_method(ParameterServer.get_dist_gradients, net.param_server_rref, cid)
            assert len(found) == 6
            opt.step(cid)
        print(f"step {step}: loss {loss.item():.5f}, gradients {sum(g.abs().sum().item() for g in found.values()):.4f}")


def run(rank, world_size):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", os.environ["PROGRAM_PORT"]
    name = "parameter_server" if rank == 0 else f"trainer_{rank}"
    rpc.init_rpc(name=name, rank=rank, world_size=world_size)
    if rank:
        train(rank)
    rpc.shutdown()


if __name__ == "__main__":
    mp.spawn(run, args=(2,), nprocs=2, join=True)
