# torchemu run --nproc-per-node 2 --check kernel_unwritten.py
"""A rank reads the slot of its own number, and its peer writes the one after."""

import torch

import torchemu
import torchemu.language as tl


@torchemu.kernel
def push(out, x, n):
    rank, peer = tl.rank(), 1 - tl.rank()
    words, slots = tl.workspace("words", 1, torch.int64), tl.workspace("slots", 3 * n)
    tl.put_signal(slots.on(peer) + (peer + 1) * n, x, n, words.on(peer))
    tl.wait(words, tl.GE, tl.call_number())
    tl.store(out, tl.load(slots + rank * n, n))


x, out = torch.ones(64), torch.empty(64)
push[1](out, x, 64)
print(out.sum())
