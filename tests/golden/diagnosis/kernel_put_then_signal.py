# torchemu run --nproc-per-node 2 --check --reorder 1 kernel_put_then_signal.py
"""A put and a signal are two messages, and with --reorder the second one may come first."""

import torch

import torchemu
import torchemu.language as tl


@torchemu.kernel
def push(out, x, n):
    peer, words = 1 - tl.rank(), tl.workspace("words", 1, torch.int64)
    slot = tl.workspace("slot", n)
    tl.put(slot.on(peer), x, n)
    tl.signal(words.on(peer))
    tl.wait(words, tl.GE, tl.call_number())
    tl.store(out, tl.load(slot, n))


x, out = torch.ones(64), torch.empty(64)
push[1](out, x, 64)
print(out.sum())
