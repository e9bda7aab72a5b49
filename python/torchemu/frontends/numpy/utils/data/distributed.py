"""DistributedSampler: each rank's share of a dataset."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from torchemu.frontends.numpy import distributed as dist
from torchemu.frontends.numpy._tensor import Generator, randperm
from torchemu.frontends.numpy.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every so many-th sample, from the rank's own number on; all ranks have as many.

    Args:
        dataset: with a length.
        num_replicas, rank: how many shares, and which; None is as the default process group says.
        shuffle: in an order at random, another one in each epoch that set_epoch tells.
        seed: of that order, the same on all ranks.
        drop_last: leaves out what does not go round; otherwise samples come again, from the first on.

    Raises:
        ValueError: there is no such rank.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        replicas = dist.get_world_size() if num_replicas is None else num_replicas
        number = dist.get_rank() if rank is None else rank
        if not 0 <= number < replicas:
            raise ValueError(f"Invalid rank {number}, rank should be in the interval [0, {replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, replicas, number
        self.epoch, self.drop_last, self.shuffle, self.seed = 0, drop_last, shuffle, seed
        n = len(dataset)
        self.num_samples: int = n // replicas if drop_last else -(-n // replicas)
        self.total_size = self.num_samples * replicas

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        order = list(range(n))
        if self.shuffle:
            order = randperm(n, generator=Generator().manual_seed(self.seed + self.epoch)).tolist()
        return itertools.islice(itertools.cycle(order), self.rank, self.total_size, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Tells which epoch begins: each has another order."""
        self.epoch = epoch
