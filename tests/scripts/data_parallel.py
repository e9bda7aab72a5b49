# torchrun --nproc-per-node 4 data_parallel.py
"""Does by hand what DistributedDataParallel does: weights are the same everywhere, gradients averaged in buckets."""

import torch
import torch.distributed as dist

BUCKET = 40  # elements


def batch(rank, step, rows=16):
    x = torch.sin(torch.arange(rows * 4, dtype=torch.float64).reshape(rows, 4) + rank * 1.7 + step * 0.3)
    return x, (x**2).sum(1, keepdim=True) - x[:, :1]


def forward(x, weights):
    w1, b1, w2, b2 = weights
    hidden = torch.tanh(x @ w1 + b1)
    return hidden, hidden @ w2 + b2


def backward(x, y, weights):
    """Yields the loss, then the gradients, last layer first."""
    hidden, out = forward(x, weights)
    error = out - y
    yield (error**2).mean()
    slope = 2 * error / error.numel()
    yield slope.sum(0)
    yield hidden.t() @ slope
    inner = (slope @ weights[2].t()) * (1 - hidden**2)
    yield inner.sum(0)
    yield x.t() @ inner


class Buckets:
    """Gradients travel together, and while later ones are computed."""

    def __init__(self):
        self.waiting, self.sent = [], []

    def add(self, gradient):
        self.waiting.append(gradient)
        if sum(g.numel() for g in self.waiting) >= BUCKET:
            self.flush()

    def flush(self):
        if self.waiting:
            flat = torch.cat([g.reshape(-1) for g in self.waiting]) / dist.get_world_size()
            self.sent.append((dist.all_reduce(flat, async_op=True), flat, self.waiting))
            self.waiting = []

    def averaged(self):
        self.flush()
        for work, flat, gradients in self.sent:
            work.wait()
            for part, g in zip(flat.split([g.numel() for g in gradients]), gradients, strict=True):
                yield part.reshape(g.shape)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    shapes = [(4, 8), (8,), (8, 1), (1,)]
    weights = [
        torch.cos(torch.arange(torch.Size(s).numel(), dtype=torch.float64) + rank).reshape(s) / 2 for s in shapes
    ]
    for w in weights:
        dist.broadcast(w, src=0)
    for step in range(30):
        buckets = Buckets()
        steps = backward(*batch(rank, step), weights)
        loss = next(steps)
        for gradient in steps:
            buckets.add(gradient)
        for w, gradient in zip(reversed(weights), buckets.averaged(), strict=True):
            w.sub_(gradient, alpha=0.1)
        dist.all_reduce(loss)
        if rank == 0 and step % 10 == 9:
            print(f"step {step}: loss {loss.item() / dist.get_world_size():.6f}, {len(buckets.sent)} buckets")
    copies = [torch.zeros_like(weights[0]) for _ in range(dist.get_world_size())]
    dist.all_gather(copies, weights[0])
    if rank == 0:
        print("same everywhere", all(torch.equal(c, copies[0]) for c in copies))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
