# torchrun --nproc-per-node 6 jacobi.py
"""Heat on a plate of 2 × 3 tiles: each step exchanges edges with up to four neighbours in one batch of messages."""

import torch
import torch.distributed as dist

ROWS, COLUMNS, TILE, STEPS = 2, 3, 4, 20
dist.init_process_group("gloo")
rank = dist.get_rank()
row, column = divmod(rank, COLUMNS)
heat = torch.zeros(TILE + 2, TILE + 2, dtype=torch.float64)
if column == 0:
    heat[:, 0] = 100.0

SIDES = {  # where to, what goes there, where what comes from there is put
    "up": (-1, 0, (1, slice(1, -1)), (0, slice(1, -1))),
    "down": (1, 0, (-2, slice(1, -1)), (-1, slice(1, -1))),
    "left": (0, -1, (slice(1, -1), 1), (slice(1, -1), 0)),
    "right": (0, 1, (slice(1, -1), -2), (slice(1, -1), -1)),
}


def neighbours():
    for dy, dx, edge, ghost in SIDES.values():
        y, x = row + dy, column + dx
        if 0 <= y < ROWS and 0 <= x < COLUMNS:
            yield y * COLUMNS + x, edge, ghost


def exchange():
    arriving, operations = [], []
    for peer, edge, ghost in neighbours():
        room = torch.empty(TILE, dtype=torch.float64)
        arriving.append((ghost, room))
        operations.append(dist.P2POp(dist.isend, heat[edge].contiguous(), peer))
        operations.append(dist.P2POp(dist.irecv, room, peer))
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    for ghost, room in arriving:
        heat[ghost] = room


for step in range(STEPS):
    exchange()
    inner = (heat[:-2, 1:-1] + heat[2:, 1:-1] + heat[1:-1, :-2] + heat[1:-1, 2:]) / 4
    change = (inner - heat[1:-1, 1:-1]).abs().max()
    heat[1:-1, 1:-1] = inner
    dist.all_reduce(change, dist.ReduceOp.MAX)
    if rank == 0 and step % 5 == 4:
        print(f"step {step}: the largest change is {change.item():.9f}")

tiles = [torch.empty(TILE, TILE, dtype=torch.float64) for _ in range(6)] if rank == 0 else None
dist.gather(heat[1:-1, 1:-1].contiguous(), tiles)
if rank == 0:
    plate = torch.cat([torch.cat(tiles[r * COLUMNS : (r + 1) * COLUMNS], 1) for r in range(ROWS)])
    for line in plate.tolist():
        print(" ".join(f"{value:6.2f}" for value in line))
dist.destroy_process_group()
