# torchrun --nproc-per-node 5 election.py
"""Ranks agree by a store only: who leads, who takes which task, when all are done."""

from datetime import timedelta

import torch.distributed as dist

TASKS = 12
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
store = dist.PrefixStore("job", dist.distributed_c10d._get_default_store())
leader = int(store.compare_set("leader", "", str(rank)))
agreed = [None] * size
dist.all_gather_object(agreed, leader)

done = []
while (task := store.add("next", 1) - 1) < TASKS:
    store.set(f"result/{task}", str(task * task))
    done.append(task)
store.add("left", -len(done))
everything = [None] * size
dist.all_gather_object(everything, done)
if rank == leader:
    store.wait([f"result/{task}" for task in range(TASKS)], timedelta(seconds=30))
    results = [int(value) for value in store.multi_get([f"result/{task}" for task in range(TASKS)])]
    store.set("sum", str(sum(results)))
total = int(store.get("sum"))
totals = [None] * size
dist.all_gather_object(totals, total)
if rank == 0:
    print("one leader:", len(set(agreed)) == 1 and agreed[0] in range(size))
    print("each task once:", sorted(t for tasks in everything for t in tasks) == list(range(TASKS)))
    print("sum:", set(totals), "left:", store.add("left", 0) + TASKS, store.check(["sum"]), store.check(["none"]))
    print("deleted:", store.delete_key("sum"), store.delete_key("sum"))
dist.barrier()
try:
    store.wait(["never"], timedelta(milliseconds=200))
except dist.DistStoreError as error:
    failed = type(error).__name__
failures = [None] * size
dist.all_gather_object(failures, failed)
if rank == 0:
    print("those who wait in vain:", failures)
dist.destroy_process_group()
