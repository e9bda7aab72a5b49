# torchrun --nproc-per-node 4 attention.py
"""Ring attention: each rank has a part of the sequence; keys and values go round while softmax is kept up online."""

import math

import torch
import torch.distributed as dist

ROWS, WIDTH = 3, 4


def part(rank, phase):
    positions = torch.arange(ROWS * WIDTH, dtype=torch.float64).reshape(ROWS, WIDTH)
    return torch.sin(positions * phase + rank)


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    q, k, v = part(rank, 0.7), part(rank, 1.1), part(rank, 0.3)
    out = torch.zeros(ROWS, WIDTH, dtype=torch.float64)
    top = torch.full((ROWS, 1), -math.inf, dtype=torch.float64)
    weight = torch.zeros(ROWS, 1, dtype=torch.float64)
    travelling = torch.stack([k, v])
    for step in range(size):
        arriving = torch.empty_like(travelling)
        requests = []
        if step < size - 1:
            requests = [dist.isend(travelling, (rank + 1) % size), dist.irecv(arriving, (rank - 1) % size)]
        scores = q @ travelling[0].transpose(0, 1) / math.sqrt(WIDTH)
        new_top = torch.maximum(top, scores.amax(dim=1, keepdim=True))
        e = torch.exp(scores - new_top)
        scale = torch.exp(top - new_top)
        out = out * scale + e @ travelling[1]
        weight = weight * scale + e.sum(dim=1, keepdim=True)
        top = new_top
        for request in requests:
            request.wait()
        travelling = arriving
    out = out / weight

    keys = torch.cat([part(r, 1.1) for r in range(size)])
    values = torch.cat([part(r, 0.3) for r in range(size)])
    want = torch.softmax(q @ keys.t() / math.sqrt(WIDTH), dim=1) @ values
    right = torch.tensor([torch.allclose(out, want)], dtype=torch.int32)
    dist.all_reduce(right)
    if rank == 2:
        print(right.item(), [f"{value:.6f}" for value in out[0].tolist()])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
