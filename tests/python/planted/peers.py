"""Symmetric memory of peers that hosts use by operations of tensors, right and with planted defects; see
test_planted.py."""

from __future__ import annotations

BEGIN = """
import os
import torch
import nvshmem.core
from triton_dist.utils import initialize_distributed, nvshmem_barrier_all_on_stream, nvshmem_create_tensor
initialize_distributed()
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
right, left = (rank + 1) % world, (rank - 1) % world
n = 64
def sym(m): return nvshmem_create_tensor((m,), torch.float32)
def peers_of(t): return [nvshmem.core.get_peer_tensor(t, p) for p in range(world)]
meet = nvshmem_barrier_all_on_stream
"""

PROGRAMS: dict[str, str] = {
    "sums of what peers show": """
shard = sym(n)
peers = peers_of(shard)
for step in range(3):
    shard.copy_(torch.arange(n).cuda() + 10.0 * step + rank)  #! *
    meet()  #- no barrier
    total = torch.zeros(n).cuda()
    for p in range(world): total += peers[p]  #! *
    meet()  #- no second barrier
    assert total.tolist() == [world * (i + 10.0 * step) + world * (world - 1) / 2 for i in range(n)]
""",
    "filled by a neighbour": """
box = sym(n)
right_box = peers_of(box)[right]
for step in range(3):
    right_box.fill_(10.0 * step + rank)  #! *
    meet()  #- no barrier
    y = box * 2  #! *
    meet()  #- no second barrier
    assert y.tolist() == [2 * (10.0 * step + left)] * n, (rank, step, y)
""",
    "added to in turns": """
total = sym(n)
total.zero_()
root = peers_of(total)[0]
meet()
for turn in range(world):
    if turn == rank: root.add_(rank + 1.0)  #! *
    meet()  #- no turns
meet()
assert rank or total.tolist() == [world * (world + 1) / 2.0] * n, (rank, total)
meet()
""",
    "a host looks at a peer's numbers": """
count = sym(n)
theirs = peers_of(count)[right]
for step in range(2):
    count.fill_(step * 100 + rank)  #! *
    meet()  #- no barrier
    assert theirs.tolist() == [step * 100.0 + right] * n, (rank, theirs.tolist())  #! *
    found = theirs[3].item()  #! no second barrier
    meet()  #- no second barrier
    assert found == step * 100 + right
""",
    "on a side stream": """
shard, s, cur = sym(n), torch.cuda.Stream(), torch.cuda.current_stream()
peers = peers_of(shard)
for step in range(2):
    shard.fill_(10.0 * step + rank)  #! *
    meet()
    s.wait_stream(cur)  #- no wait
    with torch.cuda.stream(s): y = torch.stack([p * 1 for p in peers])  #! *
    cur.wait_stream(s)  #- not joined
    meet()
    assert y[:, 0].tolist() == [10.0 * step + p for p in range(world)], y[:, 0]  #! not joined
""",
}
