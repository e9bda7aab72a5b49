# torchrun --nproc-per-node 4 training.py --steps 20
"""Data parallelism by hand: each rank has a part of the data; gradients are averaged. A line through noisy points."""

import argparse

import numpy as np
import torch
import torch.distributed as dist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    rng = np.random.default_rng(rank)
    x = rng.uniform(-1, 1, 64)
    y = 3 * x - 1 + rng.normal(0, 0.1, 64)
    weights = np.zeros(2)
    for step in range(options.steps):
        error = weights[0] * x + weights[1] - y
        report = torch.from_numpy(np.array([np.mean(error * x), np.mean(error), np.mean(error**2)]))
        dist.all_reduce(report)
        mean = report.numpy() / size
        weights -= 0.5 * mean[:2]
        if rank == 0 and step % 5 == 0:
            print(f"step {step}: loss {mean[2]:.5f}, weights {weights[0]:.4f} {weights[1]:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
