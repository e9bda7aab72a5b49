# torchemu run --nproc-per-node 2 crossed_streams.py
"""Both ranks call both groups before they look at a result, but in different orders."""

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
data, model = dist.new_group([0, 1]), dist.new_group([0, 1])
grads, norms = torch.ones(4, device="cuda"), torch.ones(2, device="cuda")
if rank == 0:
    dist.all_reduce(grads, group=data)
    dist.all_reduce(norms, group=model)
else:
    dist.all_reduce(norms, group=model)
    dist.all_reduce(grads, group=data)
print(norms.tolist())
