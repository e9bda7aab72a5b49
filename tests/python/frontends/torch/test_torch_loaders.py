"""Workers of loaders on the installed PyTorch: what each of them has of its own, from one epoch to the next."""

import random
import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset, get_worker_info

import torchemu

one = torchemu.distributed(world_size=1, torch="real")


class Drawn(Dataset):
    """Draws a number, and counts what it has been asked for."""

    def __init__(self):
        self.asked, self.opened_by = 0, None

    def __len__(self):
        return 8

    def __getitem__(self, index):
        self.asked += 1
        return random.random(), np.random.rand(), torch.rand(1).item(), self.asked, self.opened_by


def seed(number):
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


def open_in_worker(number):
    seed(number)
    dataset = get_worker_info().dataset
    while isinstance(dataset, (Subset, ConcatDataset)):
        dataset = dataset.dataset if isinstance(dataset, Subset) else dataset.datasets[0]
    dataset.opened_by = number


@pytest.mark.parametrize("is_persistent", [False, True])
@one
def test_random_numbers_of_workers_go_on_where_they_are_kept(is_persistent):
    loader = DataLoader(
        Drawn(), None, num_workers=2, worker_init_fn=seed, persistent_workers=is_persistent, sampler=range(8)
    )
    first, second = list(loader), list(loader)
    assert (first == second) is not is_persistent
    seed(1)
    drawn = [[random.random(), np.random.rand(), torch.rand(1).item()] for _ in range(8)]
    of_second_worker = [sample[:3] for sample in (*first[1::2], *second[1::2])]
    assert of_second_worker == (drawn if is_persistent else drawn[:4] * 2)
    assert [sample[3] for sample in second[1::2]] == ([5, 6, 7, 8] if is_persistent else [1, 2, 3, 4])


@pytest.mark.parametrize("wrap", [lambda d: d, lambda d: Subset(d, range(6)), lambda d: ConcatDataset([d])])
@one
def test_workers_set_attributes_of_their_own_dataset(wrap):
    dataset = Drawn()
    loader = DataLoader(wrap(dataset), None, num_workers=2, worker_init_fn=open_in_worker, sampler=range(6))
    assert [sample[4] for sample in loader] == [0, 1] * 3
    assert (dataset.asked, dataset.opened_by) == (0, None)


@one
def test_batches_of_workers_are_made_without_warnings():
    """They are tensors made of storages, of which PyTorch warns where it is told a device for them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batches = list(DataLoader(torch.arange(4.0), 2, num_workers=2))
    assert torch.equal(torch.cat(batches), torch.arange(4.0))


class Opened(IterableDataset):
    """Opens what it reads in its workers, by a method of its own."""

    def open(self, number):
        self.opened = [number]

    def close_batch(self, batch):
        return batch, self.opened

    def __iter__(self):
        yield from self.opened


@one
def test_methods_of_the_dataset_are_those_of_the_workers_copy():
    dataset = Opened()
    loader = DataLoader(dataset, 1, num_workers=2, worker_init_fn=dataset.open, collate_fn=dataset.close_batch)
    assert list(loader) == [([0], [0]), ([1], [1])] and not hasattr(dataset, "opened")


class Keeping(Dataset):
    """Opens what it reads once, by options that it uses up, and has generators and counts of its own."""

    def __init__(self):
        self.options = {"open": {"kind": "disk"}}
        self.again, self.seen, self.counts = self.options["open"], set(), [[0], [0]]
        self.rng, self.generator = np.random.default_rng(3), torch.Generator().manual_seed(4)
        self.python = random.Random(5)

    def __len__(self):
        return 6

    def __getitem__(self, index):
        kind = self.options["open"].pop("kind", None)
        self.seen.add(index)
        self.counts[index % 2][0] += 1
        drawn = self.rng.random(), torch.rand(1, generator=self.generator).item(), self.python.random()
        return index, kind, self.again.get("kind"), sorted(self.seen), str(self.counts), *drawn


def test_workers_have_copies_of_what_a_dataset_keeps():
    """Each epoch begins with what the program's dataset has; loaders with processes are the oracle."""

    def epochs(dataset):
        loader = DataLoader(ConcatDataset([dataset]), None, num_workers=2, sampler=range(6))
        return [list(loader), list(loader), list(loader.dataset)]

    @one
    def program():
        found.extend(epochs(Keeping()))

    found = []
    program()
    assert found == epochs(Keeping())
