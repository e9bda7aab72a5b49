# torchrun --nproc-per-node 4 thread_pools.py
"""Pools of threads: collectives on several groups at once, requests that threads wait for, results by futures."""

import threading
from concurrent.futures import ThreadPoolExecutor, as_completed

import torch
import torch.distributed as dist


def in_pool(groups):
    """Each thread reduces on a group of its own: the order of the threads means nothing then."""
    rank = dist.get_rank()

    def reduce(i):
        tensor = torch.full((3,), float(rank + 10 * i))
        for _ in range(5):
            dist.all_reduce(tensor, group=groups[i])
            tensor /= dist.get_world_size()
        return tensor.tolist()

    with ThreadPoolExecutor(len(groups)) as pool:
        return list(pool.map(reduce, range(len(groups))))


def messages():
    """One thread sends and one receives, in a ring."""
    rank, size = dist.get_rank(), dist.get_world_size()
    got = torch.zeros(2)
    with ThreadPoolExecutor(2) as pool:
        sent = pool.submit(dist.send, torch.tensor([rank, rank**2.0]), (rank + 1) % size)
        received = pool.submit(dist.recv, got, (rank - 1) % size)
        sent.result()
        return received.result(), got.tolist()


def one_at_a_time(group):
    """A lock makes the calls of several threads one sequence; all ranks have the same, for all are alike."""
    lock, total = threading.Lock(), torch.zeros(1)

    def add():
        with lock:
            one = torch.ones(1)
            dist.all_reduce(one, group=group)
            total.add_(one)

    threads = [threading.Thread(target=add) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return total.item()


def modes():
    """Grad mode is a thread's own, and so is a failure."""
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad(), ThreadPoolExecutor(1) as pool:
        inside = pool.submit(lambda: ((x * 3).requires_grad, torch.is_grad_enabled())).result()
        here = (x * 3).requires_grad
        failure = pool.submit(lambda: x @ torch.ones(3)).exception()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: (x * x).sum().backward()).result()
    return inside, here, type(failure).__name__, x.grad.tolist()


def main():
    dist.init_process_group("gloo")
    groups = [dist.new_group() for _ in range(3)]
    results = in_pool(groups), messages(), one_at_a_time(groups[0]), modes()
    with ThreadPoolExecutor(2) as pool:
        squares = [pool.submit(lambda n=n: torch.full((n,), float(n)).sum().item()) for n in range(5)]
        results += (sorted(future.result() for future in as_completed(squares)),)
    for rank in range(dist.get_world_size()):
        if rank == dist.get_rank():
            print(rank, *results, sep="\n  ", flush=True)
        dist.barrier()
    dist.destroy_process_group()


main()
