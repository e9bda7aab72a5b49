# torchemu run --nproc-per-node 4 exits.py
"""Rank 1 finds no configuration and exits with status 3."""

import os
import sys

import torch
import torch.distributed as dist


def configuration():
    if dist.get_rank() == 1 and not os.path.exists("rank1.yaml"):
        sys.exit(3)


dist.init_process_group("gloo")
configuration()
dist.all_reduce(torch.ones(1))
