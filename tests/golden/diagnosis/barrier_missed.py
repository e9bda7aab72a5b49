# torchemu run --nproc-per-node 3 barrier_missed.py
"""Only rank 0 saves the model, and calls the barrier there as well."""

import torch.distributed as dist

dist.init_process_group("gloo")


def save():
    dist.barrier()


if dist.get_rank() == 0:
    save()
dist.barrier()
