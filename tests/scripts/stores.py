# torchrun --nproc-per-node 4 stores.py
"""Ranks that agree through a store."""

import os
from datetime import timedelta

import torch.distributed as dist

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
store = dist.TCPStore("127.0.0.1", 29512, size, rank == 0, timeout=timedelta(seconds=30))
store.set(f"name of {rank}", f"worker {rank}")
names = [value.decode() for value in store.multi_get([f"name of {r}" for r in range(size)])]

jobs = dist.PrefixStore("jobs", store)
if rank == 0:
    for job in range(2 * size):
        jobs.queue_push("queue", str(job * job))
taken = sum(int(jobs.queue_pop("queue")) for _ in range(2))
jobs.add("total", taken)
if jobs.add("finished", 1) == size:
    jobs.set("all done", b"\x01")
jobs.wait(["all done"])

winner = store.compare_set("winner", "", f"worker {rank}").decode()
assert winner in names
try:
    store.wait(["what nobody sets"], timedelta(milliseconds=200))
except dist.DistStoreError as error:
    late = str(error).splitlines()[0]

store.add("leaving", 1)
while rank == 0 and store.add("leaving", 0) < size:
    pass
if rank == 0:
    print(names)
    print("total", int(jobs.get("total")), "left", jobs.queue_len("queue"))
    print(store.check(["winner"]), store.check(["winner", "loser"]))
    print(store.delete_key("winner"), store.check(["winner"]))
    print(late)
