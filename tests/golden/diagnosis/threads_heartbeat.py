# torchemu run --nproc-per-node 4 threads_heartbeat.py
"""A rank that ends early. The others' hearts would go on to beat for ever."""

import threading

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
store, stop = dist.distributed_c10d._get_default_store(), threading.Event()


def beat():
    while not stop.wait(1.0):
        store.add(f"beats of {dist.get_rank()}", 1)


heart = threading.Thread(target=beat, name="heart", daemon=True)
heart.start()
loss = torch.tensor([float(dist.get_rank())])
if dist.get_rank() != 2:
    dist.all_reduce(loss)
    print(loss.item())
stop.set()
heart.join()
