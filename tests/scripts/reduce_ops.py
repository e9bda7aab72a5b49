# torchrun --nproc-per-node 3 reduce_ops.py
"""Every reduction on every kind of number that PyTorch's gloo takes."""

import torch
import torch.distributed as dist

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int8, torch.uint8]

dist.init_process_group("gloo")
rank = dist.get_rank()


def reduced(dtype, op):
    t = torch.tensor([rank + 1, 6 - rank, 3, 2 * rank], dtype=dtype)
    dist.all_reduce(t, op)
    return t.tolist()


for dtype in FLOATS + INTEGERS:
    bitwise = ["BAND", "BOR", "BXOR"] if not dtype.is_floating_point else []
    for name in ["SUM", "PRODUCT", "MIN", "MAX", *bitwise]:
        result = reduced(dtype, getattr(dist.ReduceOp, name))
        if rank == 0:
            print(dtype, name, result)
dist.destroy_process_group()
