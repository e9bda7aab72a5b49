# torchemu run --nproc-per-node 2 kernel_dispatches.py
"""Each rank waits for the other in one kernel and signals it in the next one, which never starts."""

import torch

import torchemu
import torchemu.language as tl


@torchemu.kernel
def wait(words):
    tl.wait(words, tl.GE, 1)


@torchemu.kernel
def send(words):
    tl.signal(words.on(1 - tl.rank()))


words = tl.symmetric_empty(1, dtype=torch.int64)
wait[1](words)
send[1](words)
print(words.item())
