"""Trainers in DistributedDataParallel with an embedding on a parameter server, in the shape of PyTorch's tutorial."""

import os

import torch
import torch.distributed as dist
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
from torch import nn, optim
from torch.distributed.nn import RemoteModule
from torch.distributed.optim import DistributedOptimizer
from torch.distributed.rpc import RRef, TensorPipeRpcBackendOptions
from torch.nn.parallel import DistributedDataParallel

NUM_EMBEDDINGS, EMBEDDING_DIM = 20, 6


def seeded(*args, **kwargs):
    torch.manual_seed(9)
    return nn.EmbeddingBag(*args, **kwargs)


class HybridModel(nn.Module):
    def __init__(self, remote_emb_module):
        super().__init__()
        self.remote_emb_module = remote_emb_module
        torch.manual_seed(2)
        self.fc = DistributedDataParallel(nn.Sequential(nn.Linear(EMBEDDING_DIM, 8), nn.Tanh(), nn.Linear(8, 4)))

    def forward(self, indices, offsets):
        return self.fc(self.remote_emb_module.forward(indices, offsets))


def batches(rank):
    generator = torch.Generator().manual_seed(rank)
    for _ in range(3):
        indices = torch.randint(0, NUM_EMBEDDINGS, (12,), generator=generator)
        yield indices, torch.tensor([0, 3, 5, 9]), torch.randint(0, 4, (4,), generator=generator)


def _run_trainer(remote_emb_module, rank):
    model = HybridModel(remote_emb_module)
    rrefs = [*model.remote_emb_module.remote_parameters(), *(RRef(p) for p in model.fc.parameters())]
    opt = DistributedOptimizer(optim.SGD, rrefs, lr=0.05)
    criterion = nn.CrossEntropyLoss()
    found = []
    for indices, offsets, target in batches(rank):
        with dist_autograd.context() as context_id:
            loss = criterion(model(indices, offsets), target)
            dist_autograd.backward(context_id, [loss])
            grads = dist_autograd.get_gradients(context_id)
            found.append((loss.item(), sum(grads[p].abs().sum().item() for p in model.fc.parameters())))
            dist.barrier()  # each step sees the embeddings before any of its updates
            opt.step(context_id)
            dist.barrier()
    return found, [p.sum().item() for p in model.fc.parameters()]


def run_worker(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    options = TensorPipeRpcBackendOptions(init_method=f"tcp://localhost:{os.environ['PROGRAM_PORT']}")
    if rank == 2:
        rpc.init_rpc("master", rank=rank, world_size=world_size, rpc_backend_options=options)
        emb = RemoteModule("ps", seeded, args=(NUM_EMBEDDINGS, EMBEDDING_DIM), kwargs={"mode": "sum"})
        futs = [rpc.rpc_async(f"trainer{r}", _run_trainer, args=(emb, r)) for r in (0, 1)]
        for fut in futs:
            losses, sums = fut.wait()
            print(" ".join(f"{loss:.5f}/{grads:.5f}" for loss, grads in losses), " ".join(f"{s:.5f}" for s in sums))
    elif rank <= 1:
        dist.init_process_group(
            "gloo", rank=rank, world_size=2, init_method=f"tcp://localhost:{os.environ['GROUP_PORT']}"
        )
        rpc.init_rpc(f"trainer{rank}", rank=rank, world_size=world_size, rpc_backend_options=options)
    else:
        rpc.init_rpc("ps", rank=rank, world_size=world_size, rpc_backend_options=options)
    rpc.shutdown()
    if rank <= 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(run_worker, args=(4,), nprocs=4, join=True)
