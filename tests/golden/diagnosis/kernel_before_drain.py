# torchemu run --nproc-per-node 2 --check kernel_before_drain.py
"""A signal is sent while the store pipe may still have the data it is about."""

import torch

import torchemu
import torchemu.language as tl


@torchemu.kernel
def push(out, x, n):
    peer, words = 1 - tl.rank(), tl.workspace("words", 1, torch.int64)
    slot = tl.workspace("slot", n)
    tl.store(slot.on(peer), tl.load(x, n))
    tl.signal(words.on(peer))
    tl.wait(words, tl.GE, tl.call_number())
    tl.store(out, tl.load(slot, n))


x, out = torch.ones(64), torch.empty(64)
push[1](out, x, 64)
print(out.sum())
