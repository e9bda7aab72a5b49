# torchemu run --nproc-per-node 3 --check kernel_unordered_writes.py
"""Two ranks put into one slot of the third, which counts both: which of them is there is chance."""

import torch

import torchemu
import torchemu.language as tl


@torchemu.kernel
def vote(out, x, n):
    words, slot = tl.workspace("words", 1, torch.int64), tl.workspace("slot", n)
    if tl.rank() > 0:
        tl.put_signal(slot.on(0), x, n, words.on(0))
    else:
        tl.wait(words, tl.GE, tl.world_size() - 1)
        tl.store(out, tl.load(slot, n))


x, out = torch.ones(64), torch.empty(64)
vote[1](out, x, 64)
print(out.sum())
