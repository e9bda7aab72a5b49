# torchrun --nproc-per-node 3 buckets.py
"""Gradients in buckets, as many of them as fit, issued from hooks in the order in which they are ready."""

import torch
import torch.distributed as dist
from torch import nn
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()


class Buckets:
    """Averages gradients over the ranks while the backward pass goes on."""

    def __init__(self, parameters, room):
        self.room, self.ready, self.under_way, self.sizes = room, [], [], []
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(self.add)

    def add(self, parameter):
        self.ready.append(parameter.grad)
        if sum(grad.numel() for grad in self.ready) >= self.room:
            self.send()

    def send(self):
        if self.ready:
            flat = _flatten_dense_tensors(self.ready)
            self.sizes.append(flat.numel())
            self.under_way.append((dist.all_reduce(flat, async_op=True), flat, self.ready))
            self.ready = []

    def finish(self):
        self.send()
        for work, flat, grads in self.under_way:
            work.wait()
            for grad, mean in zip(grads, _unflatten_dense_tensors(flat / size, grads), strict=True):
                grad.copy_(mean)
        self.under_way.clear()


def filled(layer, scale):
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape) * scale - 1)
    return layer


model = nn.Sequential(
    filled(nn.Linear(4, 6), 0.1), nn.Tanh(), filled(nn.Linear(6, 3), 0.25), filled(nn.Linear(3, 1), 0.5)
)
buckets = Buckets(model.parameters(), room=10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
inputs = torch.arange(8.0).reshape(2, 4) / 8 + rank
for step in range(4):
    optimizer.zero_grad()
    loss = (model(inputs) - rank).square().mean()
    loss.backward()
    buckets.finish()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    mean = loss.detach() / size
    dist.all_reduce(mean)
    if rank == 0:
        print(step, f"loss {mean.item():.4f} norm {norm.item():.4f} buckets {buckets.sizes}")
    buckets.sizes.clear()

mine = nn.utils.parameters_to_vector(model.parameters())
all_of_them = torch.empty(size, mine.numel())
dist.all_gather_into_tensor(all_of_them.view(-1), mine.detach())
if rank == 0:
    print("equal", torch.equal(all_of_them[0], all_of_them[1]) and torch.equal(all_of_them[1], all_of_them[2]))
dist.destroy_process_group()
