"""An RNN with its embedding and its decoder on another worker, in the shape of PyTorch's tutorial."""

import os

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
from torch import nn, optim
from torch.distributed.optim import DistributedOptimizer
from torch.distributed.rpc import RRef

NTOKEN, NINP, NHID, BATCH, BPTT = 10, 4, 6, 5, 7


def _call_method(method, rref, *args, **kwargs):
    return method(rref.local_value(), *args, **kwargs)


def _remote_method(method, rref, *args, **kwargs):
    return rpc.rpc_sync(rref.owner(), _call_method, args=[method, rref, *args], kwargs=kwargs)


def _parameter_rrefs(module):
    return [RRef(param) for param in module.parameters()]


class EmbeddingTable(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.encoder = nn.Embedding(NTOKEN, NINP)

    def forward(self, inp):
        return self.encoder(inp)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(2)
        self.decoder = nn.Linear(NHID, NTOKEN)

    def forward(self, output):
        return self.decoder(output)


class RNNModel(nn.Module):
    def __init__(self, ps):
        super().__init__()
        self.emb_table_rref = rpc.remote(ps, EmbeddingTable)
        torch.manual_seed(3)
        self.rnn = nn.LSTM(NINP, NHID, 2)
        self.decoder_rref = rpc.remote(ps, Decoder)

    def forward(self, inp, hidden):
        emb = _remote_method(EmbeddingTable.forward, self.emb_table_rref, inp)
        output, hidden = self.rnn(emb, hidden)
        return _remote_method(Decoder.forward, self.decoder_rref, output), hidden

    def parameter_rrefs(self):
        remote = [_remote_method(_parameter_rrefs, r) for r in (self.emb_table_rref, self.decoder_rref)]
        return [*remote[0], *_parameter_rrefs(self.rnn), *remote[1]]


def run_trainer():
    model = RNNModel("ps")
    opt = DistributedOptimizer(optim.SGD, model.parameter_rrefs(), lr=0.5)
    criterion = nn.CrossEntropyLoss()
    generator = torch.Generator().manual_seed(7)
    hidden = (torch.zeros(2, BATCH, NHID), torch.zeros(2, BATCH, NHID))
    for step in range(4):
        data = torch.randint(0, NTOKEN, (BPTT, BATCH), generator=generator)
        target = torch.randint(0, NTOKEN, (BPTT, BATCH), generator=generator)
        with dist_autograd.context() as context_id:
            hidden = tuple(h.detach() for h in hidden)
            output, hidden = model(data, hidden)
            loss = criterion(output.reshape(-1, NTOKEN), target.reshape(-1))
            dist_autograd.backward(context_id, [loss])
            opt.step(context_id)
        print(f"step {step}: {loss.item():.5f}, hidden {hidden[0].sum().item():.5f}")


def run_worker(rank, world_size):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", os.environ["PROGRAM_PORT"]
    if rank == 1:
        rpc.init_rpc("trainer", rank=rank, world_size=world_size)
        run_trainer()
    else:
        rpc.init_rpc("ps", rank=rank, world_size=world_size)
    rpc.shutdown()


if __name__ == "__main__":
    mp.spawn(run_worker, args=(2,), nprocs=2, join=True)
