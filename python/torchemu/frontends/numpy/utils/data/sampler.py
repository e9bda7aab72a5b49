"""Samplers: the order in which the samples of a dataset are taken."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from torchemu import dtypes
from torchemu.frontends.numpy._tensor import (
    Generator,
    Tensor,
    as_tensor,
    empty,
    multinomial,
    randint,
    randperm,
)

T_co = TypeVar("T_co", covariant=True)

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]


class Sampler(Generic[T_co]):
    """Numbers of samples, or lists of them, in an order. Subclasses define ``__iter__``."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """From the first to the last."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """At random.

    Args:
        data_source: what has samples.
        replacement: whether a sample may come again before all have come.
        num_samples: how many; None is as many as there are.
        generator: of random numbers; None is one that the rank's gives the seed for, anew in each round.

    Raises:
        TypeError, ValueError: replacement is no bool; num_samples is not positive.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = num_samples
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples < 0:
            raise ValueError(f"num_samples should be a non-negative integer value, but got num_samples={num_samples}")

    @property
    def num_samples(self) -> int:
        """How many."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        generator = self.generator or Generator()
        if self.generator is None:
            generator.manual_seed(int(empty((), dtype=dtypes.int64, device="cpu").random_().item()))
        if self.replacement:
            yield from _several(n, self.num_samples, generator)
            return
        rounds, rest = divmod(self.num_samples, n) if n else (0, 0)
        for _ in range(rounds):
            yield from randperm(n, generator=generator).tolist()
        yield from randperm(n, generator=generator).tolist()[:rest]

    def __len__(self) -> int:
        return self.num_samples


def _several(n: int, count: int, generator: Generator) -> Iterator[int]:
    """Numbers below n, which may repeat, drawn 32 at a time."""
    for first in range(0, count, 32):
        drawn = randint(0, n, (32 if count - first >= 32 else count % 32,), dtype=dtypes.int64, generator=generator)
        yield from drawn.tolist()


class SubsetRandomSampler(Sampler[int]):
    """Those of a list, at random."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """At random, each with a probability that its weight gives.

    Raises:
        ValueError: num_samples is not positive, replacement no bool, the weights not in one dimension.
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights: Tensor = as_tensor(weights, dtype=dtypes.float64)
        if self.weights.ndim != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        yield from multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """What another sampler gives, so many at a time.

    Raises:
        ValueError: batch_size is not positive, drop_last no bool.
    """

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := list(itertools.islice(numbers, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        n: Any = len(self.sampler)  # type: ignore[arg-type]
        return int(n // self.batch_size if self.drop_last else -(-n // self.batch_size))
