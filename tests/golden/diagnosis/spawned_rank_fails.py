# torchemu run --nproc-per-node 1 spawned_rank_fails.py
"""mp.spawn's ranks fail: two by exceptions, one waits."""

import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank):
    dist.init_process_group("gloo", init_method="tcp://localhost:29522", rank=rank, world_size=3)
    if rank > 0:
        raise FileNotFoundError(f"no data for rank {rank}")
    dist.barrier()


if __name__ == "__main__":
    mp.spawn(work, nprocs=3)
