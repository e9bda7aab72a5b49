# torchrun --nproc-per-node 4 object_collectives.py
"""Python objects instead of tensors: every collective that takes them, and messages."""

import collections

import torch
import torch.distributed as dist

Point = collections.namedtuple("Point", "x y")

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
mine = {"rank": rank, "text": "ä" * rank, "nested": [None, (rank,), {rank: 1.5}], "point": Point(rank, -rank)}

everybody = [None] * size
dist.all_gather_object(everybody, mine)
assert [m["rank"] for m in everybody] == list(range(size)) and everybody[3]["point"] == Point(3, -3)

collected = [None] * size if rank == 2 else None
dist.gather_object(mine, collected, dst=2)
if rank == 2:
    assert collected == everybody

shared = [mine, "second", rank] if rank == 1 else [None] * 3
dist.broadcast_object_list(shared, src=1)
assert shared == [everybody[1], "second", 1]

received = [None]
dist.scatter_object_list(received, [f"for {r}" for r in range(size)] if rank == 3 else None, src=3)
assert received == [f"for {rank}"]

if rank == 0:
    dist.send_object_list(["one", {"two": 2}, torch.arange(3)], dst=1)
elif rank == 1:
    arrived = [None] * 3
    source = dist.recv_object_list(arrived, src=0)
    assert source == 0 and arrived[:2] == ["one", {"two": 2}] and arrived[2].tolist() == [0, 1, 2]

pair = dist.new_group([1, 3])
if rank in (1, 3):
    both = [None, None]
    dist.all_gather_object(both, rank * 11, group=pair)
    assert both == [11, 33]

tensors = [None] * size
dist.all_gather_object(tensors, torch.full((rank,), rank))
if rank == 0:
    print(everybody)
    print(received, shared[0]["text"])
    print([t.tolist() for t in tensors])
dist.destroy_process_group()
