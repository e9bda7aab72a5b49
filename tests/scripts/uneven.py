# torchrun --nproc-per-node 4 uneven.py
"""Ranks with different amounts of data: padded, announced, or each of its own size."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
mine = torch.arange(rank * rank, dtype=torch.float32) + 10 * rank

lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(size)]
dist.all_gather(lengths, torch.tensor([mine.numel()]))
lengths = [n.item() for n in lengths]

longest = torch.zeros(max(lengths))
longest[: mine.numel()] = mine
padded = [torch.empty(max(lengths)) for _ in range(size)]
dist.all_gather(padded, longest)
cut = [p[:n].tolist() for p, n in zip(padded, lengths, strict=True)]

if rank == 0:
    received = [mine] + [torch.empty(n) for n in lengths[1:]]
    for r in range(1, size):
        if lengths[r]:
            dist.recv(received[r], src=r)
    assert [t.tolist() for t in received] == cut
elif lengths[rank]:
    dist.send(mine, dst=0)

# Block r goes to rank r: everybody ends with size copies of its own length.
given = torch.cat([torch.full((n,), float(rank)) for n in lengths])
taken = torch.empty(size * lengths[rank])
dist.all_to_all_single(taken, given, [lengths[rank]] * size, lengths)
expected = [float(r) for r in range(size) for _ in range(lengths[rank])]

rows = torch.arange(size * 2).reshape(size, 2) if rank == 1 else None
row = torch.empty(2, dtype=torch.int64)
dist.scatter(row, list(rows.unbind()) if rank == 1 else None, src=1)
back = [torch.empty(2, dtype=torch.int64) for _ in range(size)] if rank == 3 else None
dist.gather(row * 2, back, dst=3)
if rank == 3:
    print("gathered", [b.tolist() for b in back], flush=True)
right = [None] * size
dist.all_gather_object(right, taken.tolist() == expected)
if rank == 0:
    print(lengths, cut)
    print("exchanged", right)
dist.destroy_process_group()
