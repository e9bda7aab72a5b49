"""A parameter server that waits for the gradients of all trainers, by asynchronous execution."""

import os
import threading

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
from torch import nn, optim

TRAINERS, STEPS = 3, 3


class BatchUpdateParameterServer:
    def __init__(self, batch_update_size=TRAINERS):
        torch.manual_seed(5)
        self.model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
        self.lock = threading.Lock()
        self.future_model = torch.futures.Future()
        self.batch_update_size = batch_update_size
        self.curr_update_size = 0
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        for p in self.model.parameters():
            p.grad = torch.zeros_like(p)

    def get_model(self):
        return self.model

    @staticmethod
    @rpc.functions.async_execution
    def update_and_fetch_model(ps_rref, grads):
        self = ps_rref.local_value()
        for p, g in zip(self.model.parameters(), grads, strict=True):
            p.grad += g
        with self.lock:
            self.curr_update_size += 1
            fut = self.future_model
            if self.curr_update_size >= self.batch_update_size:
                for p in self.model.parameters():
                    p.grad /= self.batch_update_size
                self.curr_update_size = 0
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=False)
                fut.set_result(self.model)
                self.future_model = torch.futures.Future()
        return fut


class Trainer:
    def __init__(self, ps_rref):
        self.ps_rref = ps_rref
        self.loss_fn = nn.MSELoss()

    def batches(self):
        number = rpc.get_worker_info().id
        generator = torch.Generator().manual_seed(number)
        for _ in range(STEPS):
            inputs = torch.randint(-3, 4, (8, 6), generator=generator).float()
            yield inputs, inputs.sum(1, keepdim=True)

    def train(self):
        found = []
        m = self.ps_rref.rpc_sync().get_model()
        for inputs, labels in self.batches():
            loss = self.loss_fn(m(inputs), labels)
            loss.backward()
            found.append(loss.item())
            m = rpc.rpc_sync(
                self.ps_rref.owner(),
                BatchUpdateParameterServer.update_and_fetch_model,
                args=(self.ps_rref, [p.grad for p in m.parameters()]),
            )
        return found, sum(p.abs().sum().item() for p in m.parameters())


def run_trainer(ps_rref):
    return Trainer(ps_rref).train()


def run_ps(trainers):
    ps_rref = rpc.RRef(BatchUpdateParameterServer())
    futs = [rpc.rpc_async(trainer, run_trainer, args=(ps_rref,)) for trainer in trainers]
    for trainer, (losses, total) in zip(trainers, torch.futures.wait_all(futs), strict=True):
        print(trainer, " ".join(f"{loss:.4f}" for loss in losses), f"{total:.4f}")


def run(rank, world_size):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", os.environ["PROGRAM_PORT"]
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=16, rpc_timeout=300)
    name = f"trainer{rank}" if rank else "ps"
    rpc.init_rpc(name, rank=rank, world_size=world_size, rpc_backend_options=options)
    if rank == 0:
        run_ps([f"trainer{r}" for r in range(1, world_size)])
    rpc.shutdown()


if __name__ == "__main__":
    mp.spawn(run, args=(TRAINERS + 1,), nprocs=TRAINERS + 1, join=True)
