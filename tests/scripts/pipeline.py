# torchrun --nproc-per-node 4 pipeline.py
"""A pipeline of four stages: each microbatch goes forward through all of them and its gradient back (1F1B)."""

import torch
import torch.distributed as dist

MICROBATCHES, WIDTH = 6, 3


class Stage:
    """y = x @ w, and the gradients of it by hand."""

    def __init__(self, rank, size):
        self.rank, self.last = rank, size - 1
        self.weight = torch.eye(WIDTH) * (1 + rank / 4)
        self.gradient = torch.zeros(WIDTH, WIDTH)
        self.inputs, self.sent, self.log, self.loss = [], [], [], 0.0

    def forward(self, i):
        x = torch.full((2, WIDTH), float(i + 1))
        if self.rank > 0:
            dist.recv(x, src=self.rank - 1, tag=i)
        y = x @ self.weight
        self.inputs.append((i, x, y))
        if self.rank < self.last:
            self.sent.append(dist.isend(y, dst=self.rank + 1, tag=i))
        self.log.append(f"F{i}")

    def backward(self):
        i, x, y = self.inputs.pop(0)
        slope = torch.empty_like(y)
        if self.rank < self.last:
            dist.recv(slope, src=self.rank + 1, tag=1000 + i)
        else:
            self.loss += (y**2).sum().item() / 2
            slope.copy_(y)
        self.gradient += x.t() @ slope
        if self.rank > 0:
            self.sent.append(dist.isend(slope @ self.weight.t(), dst=self.rank - 1, tag=1000 + i))
        self.log.append(f"B{i}")

    def run(self):
        warm_up = min(self.last - self.rank, MICROBATCHES)
        for i in range(warm_up):
            self.forward(i)
        for i in range(warm_up, MICROBATCHES):
            self.forward(i)
            self.backward()
        for _ in range(warm_up):
            self.backward()
        for request in self.sent:
            request.wait()


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    stage = Stage(rank, size)
    stage.run()
    for turn in range(size):
        if rank == turn:
            print(
                f"stage {rank}:", *stage.log, f"gradient {stage.gradient[0].tolist()} loss {stage.loss:.3f}", flush=True
            )
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
