# torchrun --nproc-per-node 3 overlap.py
"""Operations that go on while the program does something else, waited for in any order."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()

tensors = [torch.full((1000,), float(rank + i)) for i in range(8)]
works = [dist.all_reduce(t, async_op=True) for t in tensors]
busy = torch.eye(20)
for _ in range(5):
    busy = busy @ busy + torch.eye(20)
for work in reversed(works):
    work.wait()
assert all(work.is_completed() for work in works)

halves = [torch.full((4,), float(rank)) for _ in range(2)]
done = dist.all_reduce(halves[0], async_op=True).get_future().then(lambda f: f.value()[0] / size)
mean = done.wait()
sum_ = dist.broadcast(halves[1], src=2, async_op=True)
sum_.wait()

gathered = torch.zeros(size, 2)
all_gather = dist.all_gather_into_tensor(gathered, torch.tensor([[rank, -rank]]).float(), async_op=True)
parts = [torch.zeros(2) for _ in range(size)]
also = dist.all_gather(parts, torch.tensor([float(rank), 1.0]), async_op=True)
also.wait()
all_gather.wait()

if rank == 0:
    print([t[0].item() for t in tensors], busy[0, 0].item())
    print(mean.tolist(), halves[1].tolist())
    print(gathered.tolist(), [p.tolist() for p in parts])
dist.destroy_process_group()
