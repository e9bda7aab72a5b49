# torchemu run --nproc-per-node 2 both_receive_first.py
"""Two ranks exchange tensors, and both receive first."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
peer = 1 - dist.get_rank()
mine, theirs = torch.ones(4), torch.empty(4)
dist.recv(theirs, src=peer)
dist.send(mine, dst=peer)
