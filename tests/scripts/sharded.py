# torchrun --nproc-per-node 4 sharded.py
"""Does by hand what FSDP does: each rank keeps a shard of the weights and of the optimiser's state."""

import torch
import torch.distributed as dist

LAYERS, WIDTH = 3, 5


class Shard:
    """A rank's part of a matrix, padded so that all parts are equal."""

    def __init__(self, whole):
        rank, size = dist.get_rank(), dist.get_world_size()
        self.shape, self.numel = whole.shape, whole.numel()
        length = -(-self.numel // size)
        padded = torch.zeros(length * size, dtype=whole.dtype)
        padded[: self.numel] = whole.reshape(-1)
        self.own = padded[rank * length : (rank + 1) * length].clone()
        self.momentum = torch.zeros_like(self.own)

    def gather(self):
        """The whole, for as long as it is needed; and the request to wait for."""
        flat = torch.empty(self.own.numel() * dist.get_world_size(), dtype=self.own.dtype)
        return dist.all_gather_into_tensor(flat, self.own, async_op=True), flat

    def whole(self, request):
        work, flat = request
        work.wait()
        return flat[: self.numel].view(self.shape)

    def step(self, gradient):
        padded = torch.zeros(self.own.numel() * dist.get_world_size(), dtype=self.own.dtype)
        padded[: self.numel] = gradient.reshape(-1)
        mine = torch.empty_like(self.own)
        dist.reduce_scatter_tensor(mine, padded)
        self.momentum.mul_(0.9).add_(mine / dist.get_world_size())
        self.own.sub_(0.05 * self.momentum)


def forward(x, shards):
    """Activations of all layers; the next layer's weights come while this one's are used."""
    activations, request = [x], shards[0].gather()
    for i, shard in enumerate(shards):
        weight = shard.whole(request)
        request = shards[i + 1].gather() if i + 1 < len(shards) else None
        activations.append(activations[-1] @ weight)
    return activations


def backward(activations, slope, shards):
    gradients = []
    for shard, x in zip(reversed(shards), reversed(activations[:-1]), strict=True):
        weight = shard.whole(shard.gather())
        gradients.append(x.t() @ slope)
        slope = slope @ weight.t()
    return reversed(gradients)


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    eye = torch.eye(WIDTH, dtype=torch.float64)
    shards = [
        Shard(eye + 0.1 * torch.sin(torch.arange(25.0, dtype=torch.float64)).reshape(5, 5)) for _ in range(LAYERS)
    ]
    x = torch.cos(torch.arange(40.0, dtype=torch.float64) * (rank + 1)).reshape(8, WIDTH)
    y = x.roll(1, 1)
    for step in range(40):
        activations = forward(x, shards)
        error = activations[-1] - y
        loss = (error**2).mean()
        for shard, gradient in zip(shards, backward(activations, 2 * error / error.numel(), shards), strict=True):
            shard.step(gradient)
        dist.all_reduce(loss)
        if rank == 0 and step % 10 == 0:
            print(f"step {step}: {loss.item() / size:.6f}")
    if rank == 0:
        print("elements of a rank", sum(s.own.numel() for s in shards), "of", sum(s.numel for s in shards))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
