# torchemu run --nproc-per-node 2 threads_waiting.py
"""A worker that nobody tells to end: the program of rank 1 ends, and its thread waits for more work."""

import queue
import threading
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
work = queue.Queue()


def serve():
    while work.get() is not None:
        work.task_done()


if dist.get_rank() == 1:
    threading.Thread(target=serve, name="server").start()
    work.put("something")
else:
    with ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
        pool.submit(print, "rank 0 waits")
        dist.recv(torch.zeros(2), 1)
