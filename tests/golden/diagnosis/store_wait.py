# torchemu run --nproc-per-node 3 store_wait.py
"""Ranks wait for a key that rank 0 sets under another name."""

from datetime import timedelta

import torch.distributed as dist

dist.init_process_group("gloo")
store = dist.TCPStore("localhost", 29511, 3, dist.get_rank() == 0, timeout=timedelta(days=1))
if dist.get_rank() == 0:
    store.set("adress", b"10.0.0.1")
else:
    print(store.get("address"))
