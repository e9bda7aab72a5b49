# torchemu run --nproc-per-node 1 lock_order.py
"""Two processes take two locks in different orders."""

import torch.multiprocessing as mp


def work(rank, locks):
    first, second = (0, 1) if rank == 0 else (1, 0)
    with locks[first], locks[second]:
        pass


if __name__ == "__main__":
    mp.spawn(work, args=([mp.Lock(), mp.Lock()],), nprocs=2)
