# torchemu run --nproc-per-node 2 --virtual-clock clock.py
"""How long an all_reduce takes on the fabric, by the module time."""

import time

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
t = torch.ones(1 << 20, device="cuda")
t[0].item()  # waits for it
start = time.perf_counter()
dist.all_reduce(t)
t[0].item()
took = time.perf_counter() - start
time.sleep(3600)
if dist.get_rank() == 0:
    print(f"{took * 1e6:.1f} us, then an hour: {time.perf_counter() - start:.4f} s")
