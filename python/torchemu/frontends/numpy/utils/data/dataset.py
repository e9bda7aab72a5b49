"""Datasets: what has samples by number, or one after another."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from torchemu.frontends.numpy._tensor import Generator, Tensor, randperm
from torchemu.frontends.numpy._tensor.generator import default_generator

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]


class Dataset(Generic[T_co]):
    """What has samples by number. Subclasses define ``__getitem__``, and mostly ``__len__``."""

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """What has samples one after another. Subclasses define ``__iter__``."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset[T_co]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Samples are the rows of tensors that have as many.

    Raises:
        AssertionError: they have not.
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(t.size(0) != tensors[0].size(0) for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class StackDataset(Dataset[Any]):
    """Samples are those of several datasets side by side: tuples, or dicts where the datasets have names.

    Raises:
        ValueError: datasets with and without names, or none, or of different lengths.
    """

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if bool(args) == bool(kwargs):
            text = "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like input/output"
            raise ValueError(text if args else "At least one dataset should be passed")
        self.datasets: Any = args or kwargs
        self._length = len(next(iter(self._all())))
        if any(len(d) != self._length for d in self._all()):
            raise ValueError("Size mismatch between datasets")

    def _all(self) -> Iterable[Any]:
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Samples of several datasets one after another.

    Raises:
        AssertionError: there is no dataset, or one is iterable only.
    """

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets: list[Any] = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][index - before]


class ChainDataset(IterableDataset[T_co]):
    """Samples of several iterable datasets one after another."""

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets: Any = datasets

    def __iter__(self) -> Iterator[T_co]:
        return itertools.chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)


class Subset(Dataset[T_co]):
    """Samples of a dataset by a list of their numbers."""

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> Any:
        chosen = [self.indices[i] for i in indices]
        together = getattr(self.dataset, "__getitems__", None)
        return together(chosen) if callable(together) else [self.dataset[i] for i in chosen]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T], lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[T]]:
    """Parts of a dataset, drawn at random, of these lengths, or of these shares of it.

    Args:
        dataset: with a length.
        lengths: numbers that add up to its length, or to 1. What shares leave over goes to the first parts, one each.
        generator: of random numbers; None is the rank's.

    Raises:
        ValueError: they do not add up, or a share is negative.
    """
    total = len(dataset)  # type: ignore[arg-type]
    sizes = _of_shares(lengths, total) if math.isclose(sum(lengths), 1) and sum(lengths) <= 1 else list(lengths)
    if sum(sizes) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = randperm(total, generator=generator or default_generator()).tolist()
    ends = list(itertools.accumulate(int(n) for n in sizes))
    return [Subset(dataset, order[end - int(n) : end]) for n, end in zip(sizes, ends, strict=True)]


def _of_shares(shares: Sequence[float], total: int) -> list[int]:
    for i, share in enumerate(shares):
        if not 0 <= share <= 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
    sizes = [math.floor(total * share) for share in shares]
    for i in range(total - sum(sizes)):
        sizes[i % len(sizes)] += 1
    return sizes
