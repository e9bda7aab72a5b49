"""DataLoader's workers: what they would do as processes is done in their turn, when the program asks for a batch.

A worker has its copy of the dataset, its random numbers and its worker_info, as in PyTorch, and batches come in the
same order. Loading takes no simulated time.
"""

from __future__ import annotations

import collections
import copy
import random
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch._utils import ExceptionWrapper
from torch.utils.data import Dataset, IterableDataset, _utils, dataloader
from torch.utils.data._utils import worker as workers

from torchemu import multiprocessing
from torchemu.frontends.torch import device
from torchemu.frontends.torch.session import Session

_DICTS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)
_CONTAINERS = (*_DICTS, list, set, collections.deque)
_DRAWING = (random.Random, np.random.RandomState, np.random.Generator, torch.Generator)
"""Classes of what draws random numbers."""

_MANY = 1000
"""The number of elements above which a container's are its samples, and are shared by workers."""


class _Worker:
    """One worker of a loader.

    Args:
        loader: the loader's iterator.
        number: of the worker.
        seed: that of its random numbers.
    """

    def __init__(self, loader: Any, number: int, seed: int) -> None:
        self.has_ended = False
        self._process, self._method = device.Process(is_child=True), _start_method(loader)
        dataset = _copied(loader._dataset)
        self._info = workers.WorkerInfo(id=number, num_workers=loader._num_workers, seed=seed, dataset=dataset)
        python, numpy = random.Random(seed), np.random.RandomState(seed % 2**32)
        self._random = python.getstate(), numpy.get_state(), torch.Generator().manual_seed(seed).get_state()
        self._number = number
        with self._in_place():
            if loader._worker_init_fn is not None:
                self._own(loader, loader._worker_init_fn)(number)
            self._fetcher = self._made_fetcher(loader)

    def _own(self, loader: Any, function: Any) -> Any:
        """Returns a loader's function as the worker has it: what is a method of the dataset is one of its copy."""
        is_datasets = isinstance(function, types.MethodType) and function.__self__ is loader._dataset
        return types.MethodType(function.__func__, self._info.dataset) if is_datasets else function

    def _made_fetcher(self, loader: Any) -> Any:
        collate = self._own(loader, loader._collate_fn)
        return dataloader._DatasetKind.create_fetcher(
            loader._dataset_kind, self._info.dataset, loader._auto_collation, collate, loader._drop_last
        )

    def begin_again(self, loader: Any) -> None:
        """Begins another epoch, with the random numbers and the dataset that the last one has left."""
        self.has_ended = False
        with self._in_place():
            self._fetcher = self._made_fetcher(loader)

    def fetch(self, index: Any) -> Any:
        """A batch. Raises StopIteration where an iterable dataset has ended, and what the dataset raises."""
        with self._in_place():
            try:
                return self._fetcher.fetch(index)
            except StopIteration:
                self.has_ended = True
                raise
            except Exception:
                return ExceptionWrapper(where=f"in DataLoader worker process {self._number}")

    @contextmanager
    def _in_place(self) -> Iterator[None]:
        """Makes what goes on the worker's."""
        before = random.getstate(), np.random.get_state(), torch.get_rng_state()
        info, workers._worker_info = workers._worker_info, self._info
        self._set(self._random)
        try:
            with device.inside(self._process, self._method):
                yield
        finally:
            workers._worker_info = info
            self._random = random.getstate(), np.random.get_state(), torch.get_rng_state()
            self._set(before)

    @staticmethod
    def _set(states: Any) -> None:
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])


def _start_method(loader: Any) -> str:
    """The way in which a loader would start its workers."""
    asked = getattr(loader, "_multiprocessing_context", None)
    return str(multiprocessing.get_start_method() if asked is None else asked.get_start_method())


def _copied(dataset: Any) -> Any:
    """A worker's copy. Of a dataset that is asked by index, which may be large, it shares what is no container, no
    generator of random numbers, and no further dataset."""
    try:
        return copy.deepcopy(dataset) if isinstance(dataset, IterableDataset) else _shallow(dataset, {})
    except Exception:
        return dataset


def _shallow(value: Any, made: dict[int, Any]) -> Any:
    """Copies a dataset with what it has of its own; anything else is returned as it is.

    Args:
        value: the dataset, or what is in it.
        made: the copies by the ids of what they are copied from.
    """
    if id(value) in made:
        return made[id(value)]
    if isinstance(value, Dataset):
        found = made[id(value)] = copy.copy(value)
        parts = getattr(found, "__dict__", {})
        parts.update({name: _shallow(part, made) for name, part in parts.items()})
        return found
    if type(value) in _CONTAINERS:
        found = made[id(value)] = copy.copy(value)
        _copy_parts(found, made)
        return found
    if isinstance(value, _DRAWING):
        found = made[id(value)] = copy.deepcopy(value)
        return found
    return value


def _copy_parts(container: Any, made: dict[int, Any]) -> None:
    """Puts copies in place of what a container has, where that is not much."""
    if len(container) > _MANY:
        return
    if isinstance(container, dict):
        container.update({key: _shallow(part, made) for key, part in container.items()})
    elif not isinstance(container, set):
        for at, part in enumerate(container):
            container[at] = _shallow(part, made)


class WorkersIter(dataloader._BaseDataLoaderIter):
    """The iterator of a loader with workers."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        self._worker_init_fn = loader.worker_init_fn
        self._dataset_kind = loader._dataset_kind
        self._multiprocessing_context = loader.multiprocessing_context
        self._begin()

    def _begin(self) -> None:
        self._workers = [_Worker(self, n, self._base_seed + n) for n in range(self._num_workers)]
        self._next_worker = 0

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        if not first_iter:
            self._next_worker = 0
            for worker in self._workers:
                worker.begin_again(self)

    def _next_data(self) -> Any:
        while True:
            index = self._next_index()
            while not all(worker.has_ended for worker in self._workers):
                worker = self._workers[self._next_worker]
                self._next_worker = (self._next_worker + 1) % len(self._workers)
                if worker.has_ended:
                    continue
                try:
                    return self._given(worker.fetch(index))
                except StopIteration:
                    continue
            raise StopIteration

    def _given(self, data: Any) -> Any:
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        if self._pin_memory:
            data = _utils.pin_memory.pin_memory(data, self._pin_memory_device)
        return data

    def _shutdown_workers(self) -> None:
        """There is nothing to shut down."""


def install(run: Session) -> None:
    """Makes loaders with workers run them in the rank, until the run ends."""
    run.replace(dataloader, "_MultiProcessingDataLoaderIter", WorkersIter)
    run.replace(dataloader.DataLoader, "check_worker_number_rationality", lambda self: None)
