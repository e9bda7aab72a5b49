# torchemu run --nproc-per-node 2 --check kernel_window_reused.py
"""The slot is written again in the next round, while the peer may still read what the last one put there."""

import torch

import torchemu
import torchemu.language as tl


@torchemu.kernel
def push(out, x, n, rounds):
    peer, words = 1 - tl.rank(), tl.workspace("words", 1, torch.int64)
    slot = tl.workspace("slot", n)
    for i in range(rounds):
        tl.put_signal(slot.on(peer), x, n, words.on(peer))
        tl.wait(words, tl.GE, i + 1)
        tl.store(out, tl.load(slot, n))


x, out = torch.ones(64), torch.empty(64)
push[1](out, x, 64, 2)
print(out.sum())
