# torchemu run --nproc-per-node 2 timeout_store.py
"""A key that comes too late."""

from datetime import timedelta

import torch.distributed as dist

dist.init_process_group("gloo")
store = dist.TCPStore("localhost", 29511, 2, dist.get_rank() == 0, timeout=timedelta(milliseconds=300))
if dist.get_rank() == 1:
    store.get("ready")
else:
    dist.barrier()
