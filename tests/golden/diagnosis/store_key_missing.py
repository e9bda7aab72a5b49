# torchemu run --nproc-per-node 2 store_key_missing.py
"""Rank 1 waits for a key, in a store without a time limit, that nobody sets."""

import torch.distributed as dist

dist.init_process_group("gloo")
store = dist.HashStore() if dist.get_rank() < 0 else dist.FileStore("agreement", 2)
if dist.get_rank() == 1:
    store.wait(["ready"])
else:
    store.set("raedy", b"1")
