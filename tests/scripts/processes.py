# python processes.py
"""Processes as in PyTorch's tutorial, with a queue and a lock, and a parent that talks to them."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

SIZE = 4
calls = 0  # a process has its own


def worker(rank, tasks, results, lock, done):
    global calls
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "29511"
    dist.init_process_group("gloo", rank=rank, world_size=SIZE)
    while (task := tasks.get()) is not None:
        calls += 1
        results.put((task, task**2))
    t = torch.tensor([calls])
    dist.all_reduce(t)
    with lock:
        done.value += 1
    dist.barrier()
    results.put((t.item(), done.value))
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.set_start_method("spawn")
    tasks, results, lock, done = mp.Queue(), mp.Queue(), mp.Lock(), mp.Value("i", 0)
    processes = [mp.Process(target=worker, args=(rank, tasks, results, lock, done)) for rank in range(SIZE)]
    for process in processes:
        process.start()
    for task in range(10):
        tasks.put(task)
    print("squares", sorted(results.get() for _ in range(10)))
    for _ in range(SIZE):
        tasks.put(None)
    print("calls and processes", {results.get() for _ in range(SIZE)}, "here", calls)
    for process in processes:
        process.join()
    print("exit codes", [process.exitcode for process in processes])
