# torchemu run --nproc-per-node 1 --check kernel_freed.py
"""A kernel keeps the pointer to a tensor, and uses it after the launch that had the tensor."""

import torch

import torchemu
import torchemu.language as tl

kept = []


@torchemu.kernel
def keep(x):
    kept.append(x)


@torchemu.kernel
def late(out, n):
    tl.store(out, tl.load(kept[0], n))


x, out = torch.ones(64), torch.empty(64)
keep[1](x)
late[1](out, 64)
print(out.sum())
