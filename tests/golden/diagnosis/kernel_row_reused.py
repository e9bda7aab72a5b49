# torchemu run --nproc-per-node 2 --check kernel_row_reused.py
"""The barrier of one use is used twice: the second time its words are 1 already."""

import torch

import torchemu
import torchemu.language as tl


def meet(words):
    tl.signal(words.on(1 - tl.rank()))
    tl.wait(words, tl.GE, 1)


@torchemu.kernel
def pull(out, x, n):
    words = tl.workspace("words", 1, torch.int64)
    staged = tl.workspace("staged", n)
    tl.store(staged, tl.load(x, n))
    tl.drain()
    meet(words)
    tl.store(out, tl.load(staged.on(1 - tl.rank()), n))


x, out = torch.ones(64), torch.empty(64)
pull[1](out, x, 64)
pull[1](out, x, 64)
print(out.sum())
