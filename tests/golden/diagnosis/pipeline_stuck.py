# torchemu run --nproc-per-node 4 pipeline_stuck.py
"""A pipeline: activations are sent to the right, gradients to the left, by neighbours at the same time."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
stage, last = dist.get_rank(), dist.get_world_size() - 1


def forward():
    t = torch.ones(4)
    if stage > 0:
        dist.recv(t, src=stage - 1)
    if stage < last:
        dist.send(t, dst=stage + 1)


def backward():
    t = torch.ones(4)
    if stage < last:
        dist.recv(t, src=stage + 1)
    if stage > 0:
        dist.send(t, dst=stage - 1)


for _ in range(last - stage):
    forward()
for _ in range(4):
    forward()
    backward()
