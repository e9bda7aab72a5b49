# torchrun --nproc-per-node 4 threads.py
"""Threads beside a training loop: batches are fetched ahead, checkpoints written behind it, and a heart beats."""

import os
import queue
import shutil
import tempfile
import threading

import torch
import torch.distributed as dist

STEPS, KEPT = 6, 2


def fetch(batches):
    """A loader's thread: makes batches ahead of the loop, no more than the queue takes."""
    generator = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(STEPS):
        batches.put(torch.randint(0, 5, (8, 4), generator=generator).float())
    batches.put(None)


def write(folder, states, written):
    """A checkpoint's thread: writes what the loop hands to it."""
    while (item := states.get()) is not None:
        step, state = item
        torch.save(state, os.path.join(folder, f"step{step}.pt"))
        written.append(step)
        states.task_done()
    states.task_done()


def beat(store, stop):
    """A heartbeat's thread, which has a connection of its own, as the store's is busy while it waits for a key."""
    rank, beats = dist.get_rank(), 0
    while True:
        beats += 1
        store.set(f"beat{rank}", str(beats))
        if stop.wait(0.01):
            return


def train(folder):
    rank, size = dist.get_rank(), dist.get_world_size()
    batches, states, written = queue.Queue(maxsize=2), queue.Queue(), []
    threads = [
        threading.Thread(target=fetch, args=(batches,), name="fetch"),
        threading.Thread(target=write, args=(folder, states, written), name="write"),
    ]
    for thread in threads:
        thread.start()
    weights, step = torch.ones(4), 0
    while (batch := batches.get()) is not None:
        gradient = (batch @ weights - 1) @ batch / len(batch)
        dist.all_reduce(gradient)
        weights -= 0.01 * gradient / size
        step += 1
        if rank == 0 and step % KEPT == 0:
            states.put((step, {"step": step, "weights": weights.clone()}))
    states.put(None)
    states.join()
    for thread in threads:
        thread.join()
    return weights, written


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    folder = [tempfile.mkdtemp()] if rank == 0 else [None]
    dist.broadcast_object_list(folder, 0)
    store, stop = dist.distributed_c10d._get_default_store(), threading.Event()
    heart = threading.Thread(target=beat, args=(store.clone() if hasattr(store, "clone") else store, stop), daemon=True)
    heart.start()
    weights, written = train(folder[0])
    store.wait([f"beat{r}" for r in range(dist.get_world_size())])
    dist.barrier()
    stop.set()
    heart.join()
    alike = weights.clone()
    dist.broadcast(alike, 0)
    print_in_turn(
        f"{torch.equal(alike, weights)} {written} {int(store.get(f'beat{rank}')) > 0} {threading.active_count()}"
    )
    if rank == 0:
        for step in written:
            state = torch.load(os.path.join(folder[0], f"step{step}.pt"))
            print(state["step"], [round(x, 4) for x in state["weights"].tolist()])
        shutil.rmtree(folder[0])
    dist.destroy_process_group()


def print_in_turn(text):
    for rank in range(dist.get_world_size()):
        if rank == dist.get_rank():
            print(rank, text, flush=True)
        dist.barrier()


main()
