# torchemu run --nproc-per-node 2 --check kernel_no_barrier.py
"""Ranks read what their peer has staged, and nobody says that it is there."""

import torch

import torchemu
import torchemu.language as tl


@torchemu.kernel
def pull(out, x, n):
    staged = tl.workspace("staged", n)
    tl.store(staged, tl.load(x, n))
    tl.drain()
    tl.store(out, tl.load(staged.on(1 - tl.rank()), n))


x, out = torch.ones(64), torch.empty(64)
pull[1](out, x, 64)
print(out.sum())
