# torchemu run --nproc-per-node 3 --check kernel_overshot.py
"""A wait for one of two signals, with EQ: if both come before it looks, it waits for ever."""

import torch

import torchemu
import torchemu.language as tl


@torchemu.kernel
def first(out, n):
    words = tl.workspace("words", 1, torch.int64)
    if tl.rank() > 0:
        tl.signal(words.on(0))
    else:
        tl.wait(words, tl.EQ, 1)
    tl.store(out, tl.full(n, 1.0))


out = torch.empty(64)
first[1](out, 64)
print(out.sum())
