# torchemu run --nproc-per-node 2 threads_locks.py
"""A writer and a reader that take two locks, in the order that each likes best."""

import threading

import torch.distributed as dist

states, files = threading.Lock(), threading.RLock()
ready = threading.Barrier(2)


def write():
    with states:
        ready.wait()
        with files:
            pass


def read():
    with files:
        ready.wait()
        with states:
            pass


dist.init_process_group("gloo")
if dist.get_rank() == 1:
    threads = [threading.Thread(target=target, name=target.__name__) for target in (write, read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
dist.barrier()
