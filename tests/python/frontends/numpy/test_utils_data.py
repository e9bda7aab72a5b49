"""torch.utils.data: every sample once, in the right share, and batches of all that samples are made of.

tests/scripts/loader.py compares orders at random with PyTorch's.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR, on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    random_split,
)


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world(SIXTY_FOUR)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("ranks", [1, 2, 7, 64])
@pytest.mark.parametrize("n", [1, 6, 64, 100, 201])
def test_shares_of_all_ranks_are_the_whole(n: int, ranks: int, drop_last: bool, shuffle: bool) -> None:
    def program(rank: int) -> list[int]:
        dist.init_process_group()
        sampler = DistributedSampler(range(n), shuffle=shuffle, drop_last=drop_last)
        sampler.set_epoch(3)
        assert len(sampler) == len(list(sampler))
        return list(sampler)

    shares = on_ranks(ranks, program)
    size = n // ranks if drop_last else (n + ranks - 1) // ranks
    assert [len(share) for share in shares] == [size] * ranks
    dealt = [share[i] for i in range(size) for share in shares]  # in turns, as from a pack of cards
    counts = collections.Counter(dealt)
    assert max(counts.values(), default=1) - (min(counts.values()) if len(counts) == n else 0) <= 1
    assert set(dealt) <= set(range(n)) and (drop_last or len(counts) == n)
    if not shuffle:
        assert dealt == list(itertools.islice(itertools.cycle(range(n)), size * ranks))


def test_epochs_have_orders_of_their_own() -> None:
    sampler = DistributedSampler(range(50), 2, 1, seed=5)
    orders = []
    for epoch in (0, 1, 0):
        sampler.set_epoch(epoch)
        orders.append(list(sampler))
    assert orders[0] == orders[2] != orders[1]
    assert list(DistributedSampler(range(50), 2, 1, seed=6)) == orders[1]  # the epoch is added to the seed


@pytest.mark.parametrize("n", [0, 1, 9, 10])
@pytest.mark.parametrize("size", [1, 3, 10, 20])
@pytest.mark.parametrize("drop_last", [False, True])
def test_batches(n: int, size: int, drop_last: bool) -> None:
    loader = DataLoader(range(n), batch_size=size, drop_last=drop_last)
    want = [list(range(i, min(i + size, n))) for i in range(0, n, size)]
    if drop_last:
        want = [batch for batch in want if len(batch) == size]
    assert [batch.tolist() for batch in loader] == want
    assert len(loader) == len(want) == len(list(BatchSampler(range(n), size, drop_last)))


@pytest.mark.parametrize("n", [0, 1, 100])
def test_shuffled_samples_come_once(n: int) -> None:
    loader = DataLoader(range(n), batch_size=7, shuffle=True)
    rounds = [[i for batch in loader for i in batch.tolist()] for _ in range(2)]
    assert sorted(rounds[0]) == sorted(rounds[1]) == list(range(n))
    assert n < 2 or rounds[0] != rounds[1]
    assert sorted(SubsetRandomSampler([4, 4, 2])) == [2, 4, 4]
    assert len(list(RandomSampler(range(3), num_samples=8))) == 8
    assert set(WeightedRandomSampler([0, 1, 0, 2], 50)) == {1, 3}


Point = collections.namedtuple("Point", ["x", "y"])


def test_collation_of_all_kinds() -> None:
    made = default_collate([
        {"t": torch.ones(2) * i, "n": np.full(3, i, np.int16), "s": np.float64(i), "f": i / 2, "i": i, "b": i > 0,
         "text": str(i), "p": Point(i, -i), "list": [i, 2 * i], "nested": ({"z": i},)}
        for i in range(3)
    ])  # fmt: skip
    assert (made["t"].shape, made["n"].dtype, made["s"].dtype) == ((3, 2), torch.int16, torch.float64)
    assert (made["f"].tolist(), made["f"].dtype) == ([0, 0.5, 1], torch.float64)
    assert (made["i"].tolist(), made["i"].dtype, made["b"].dtype) == ([0, 1, 2], torch.int64, torch.bool)
    assert made["text"] == ["0", "1", "2"]
    assert type(made["p"]) is Point and made["p"].y.tolist() == [0, -1, -2]
    assert [t.tolist() for t in made["list"]] == [[0, 1, 2], [0, 2, 4]]
    assert made["nested"][0]["z"].tolist() == [0, 1, 2]
    converted = default_convert({"a": np.arange(2), "b": ["x", (np.float32(1), None)]})
    assert converted["a"].tolist() == [0, 1] and converted["b"][0] == "x" and converted["b"][1][0].item() == 1


class Stream(IterableDataset[int]):
    def __init__(self, n: int) -> None:
        self.n = n

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.n))

    def __len__(self) -> int:
        return self.n


@pytest.mark.parametrize(("n", "size", "drop_last"), [(0, 3, False), (7, 3, False), (7, 3, True), (6, 3, True)])
def test_streams(n: int, size: int, drop_last: bool) -> None:
    loader = DataLoader(Stream(n), batch_size=size, drop_last=drop_last)
    batches = [batch.tolist() for batch in loader]
    assert len(loader) == len(batches)
    assert [i for batch in batches for i in batch] == list(range(n - n % size if drop_last else n))
    assert list(DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]
    assert list(Stream(2) + Stream(3)) == [0, 1, 0, 1, 2]


def test_datasets_of_datasets() -> None:
    a, b = TensorDataset(torch.arange(4), torch.arange(4) * 10), TensorDataset(torch.arange(2), torch.arange(2) * -1)
    joined = a + b
    assert [tuple(map(int, joined[i])) for i in (0, 3, 4, 5, -1)] == [(0, 0), (3, 30), (0, 0), (1, -1), (1, -1)]
    assert len(joined) == 6
    stacked = StackDataset(first=a, second=range(4))
    assert stacked[2]["second"] == 2 and StackDataset(range(3), "abc")[1] == (1, "b") and len(stacked) == 4
    assert [int(x[0]) for x in Subset(a, [3, 1])] == [3, 1]
    assert [b.tolist() for b in DataLoader(Subset(range(9), [8, 0, 4]), batch_size=2)] == [[8, 0], [4]]


@pytest.mark.parametrize(
    ("lengths", "sizes"), [([3, 7], [3, 7]), ([0.25, 0.75], [3, 7]), ([0.5, 0.5], [5, 5]), ([1 / 3] * 3, [4, 3, 3])]
)
def test_random_split(lengths: list[float], sizes: list[int]) -> None:
    parts = random_split(range(10), lengths, torch.Generator().manual_seed(1))
    assert [len(part) for part in parts] == sizes
    assert sorted(i for part in parts for i in part.indices) == list(range(10))


CASES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: DataLoader(range(3), shuffle=True, sampler=[1]), ValueError, "sampler option is mutually exclusive with"),
    (lambda: DataLoader(range(3), drop_last=True, batch_sampler=[[1]]), ValueError, "batch_sampler option is mutually"),
    (lambda: DataLoader(range(3), None, drop_last=True), ValueError, "batch_size=None option disables auto-batching"),
    (lambda: DataLoader(range(3), 0), ValueError, "batch_size should be a positive integer value"),
    (lambda: DataLoader(range(3), num_workers=-1), ValueError, "num_workers option should be non-negative"),
    (lambda: DataLoader(range(3), timeout=-1), ValueError, "timeout option should be non-negative"),
    (lambda: DataLoader(range(3), prefetch_factor=2), ValueError, "prefetch_factor option could only be specified in"),
    (lambda: DataLoader(range(3), persistent_workers=True), ValueError, "persistent_workers option needs num_workers"),
    (lambda: DataLoader(Stream(3), shuffle=True), ValueError, "DataLoader with IterableDataset: expected unspecified"),
    (lambda: DataLoader(Stream(3), sampler=[1]), ValueError, "DataLoader with IterableDataset: expected unspecified"),
    (
        lambda: DistributedSampler(range(3), 2, 2),
        ValueError,
        r"Invalid rank 2, rank should be in the interval",
    ),
    (lambda: DistributedSampler(range(3)), ValueError, "Default process group has not been initialized"),
    (lambda: random_split(range(3), [1, 1]), ValueError, "Sum of input lengths does not equal the length of the input"),
    (lambda: random_split(range(3), [1.5, -0.5]), ValueError, "Fraction at index 0 is not between 0 and 1"),
    (lambda: RandomSampler(range(3), replacement=1), TypeError, "replacement should be a boolean value"),  # type: ignore[arg-type]
    (lambda: RandomSampler(range(3), num_samples=-1), ValueError, "num_samples should be a non-negative integer value"),
    (lambda: WeightedRandomSampler([1.0], 0), ValueError, "num_samples should be a positive integer value"),
    (lambda: WeightedRandomSampler([[1.0]], 1), ValueError, "weights should be a 1d sequence"),  # type: ignore[list-item]
    (lambda: TensorDataset(torch.ones(2), torch.ones(3)), AssertionError, "Size mismatch between tensors"),
    (lambda: ConcatDataset([]), AssertionError, "datasets should not be an empty iterable"),
    (lambda: ConcatDataset([Stream(2)]), AssertionError, "ConcatDataset does not support IterableDataset"),
    (lambda: StackDataset(), ValueError, "At least one dataset should be passed"),
    (lambda: StackDataset(range(2), range(3)), ValueError, "Size mismatch between datasets"),
    (lambda: Dataset()[0], NotImplementedError, "Subclasses of Dataset should implement __getitem__"),
    (lambda: default_collate([object()]), TypeError, "default_collate: batch must contain tensors, numpy arrays"),
    (lambda: default_collate([np.array(["a"])]), TypeError, "default_collate: batch must contain"),
    (lambda: default_collate([[1], [1, 2]]), RuntimeError, "each element in list of batch should be of equal size"),
]


@pytest.mark.parametrize(("call", "kind", "text"), CASES)
def test_misuse(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=f"^{text}"):
        call()
