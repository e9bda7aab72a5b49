"""DataLoader: batches of a dataset's samples. The rank itself loads them: there are no workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torchemu import dtypes
from torchemu.frontends.numpy._tensor import Generator, empty
from torchemu.frontends.numpy.utils.data._collate import default_collate, default_convert
from torchemu.frontends.numpy.utils.data.dataset import IterableDataset
from torchemu.frontends.numpy.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]


class DataLoader:
    """Batches of a dataset.

    Args:
        dataset: a Dataset, or anything that has samples by number or one after another.
        batch_size: samples of a batch; None is no batches but samples.
        shuffle: takes samples at random.
        sampler: what says which samples are taken; batch_sampler: which make a batch.
        num_workers, timeout, worker_init_fn, prefetch_factor, persistent_workers, multiprocessing_context, in_order:
            checked, and without effect: the rank loads samples itself, when they are asked for.
        collate_fn: makes a batch of samples.
        pin_memory, pin_memory_device: without effect.
        drop_last: leaves out the last batch where it is smaller.
        generator: of random numbers; None is the rank's.

    Raises:
        ValueError: arguments that do not go together.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset, self.generator = dataset, generator
        self.num_workers, self.timeout, self.worker_init_fn = num_workers, timeout, worker_init_fn
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.prefetch_factor, self.persistent_workers, self.in_order = prefetch_factor, persistent_workers, in_order
        self.multiprocessing_context = multiprocessing_context
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable:
            _check_iterable(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        self._set_batches(batch_size, bool(shuffle), sampler, batch_sampler, drop_last)
        self.collate_fn = collate_fn or (default_convert if self.batch_sampler is None else default_collate)

    def _set_batches(self, batch_size: int | None, shuffle: bool, sampler: Any, batches: Any, drop_last: bool) -> None:
        if batches is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            sampler = self._sampler(shuffle)
        self.batch_size, self.drop_last, self.sampler = batch_size, drop_last, sampler
        self.batch_sampler = BatchSampler(sampler, batch_size, drop_last) if batch_size is not None else batches

    def _sampler(self, shuffle: bool) -> Any:
        if self._iterable:
            return _Endless()
        return RandomSampler(self.dataset, generator=self.generator) if shuffle else SequentialSampler(self.dataset)

    def __iter__(self) -> Iterator[Any]:
        _draw(self.generator)
        return self._of_stream() if self._iterable else self._of_numbers()

    def _of_numbers(self) -> Iterator[Any]:
        together = getattr(self.dataset, "__getitems__", None)
        for numbers in self.sampler if self.batch_sampler is None else self.batch_sampler:
            if self.batch_sampler is None:
                yield self.collate_fn(self.dataset[numbers])
            elif callable(together):
                yield self.collate_fn(together(numbers))
            else:
                yield self.collate_fn([self.dataset[i] for i in numbers])

    def _of_stream(self) -> Iterator[Any]:
        samples = iter(self.dataset)
        if self.batch_sampler is None:
            yield from map(self.collate_fn, samples)
            return
        for numbers in self.batch_sampler:
            batch = [sample for _, sample in zip(numbers, samples, strict=False)]
            if not batch or (self.drop_last and len(batch) < len(numbers)):
                return
            yield self.collate_fn(batch)

    def __len__(self) -> int:
        if not self._iterable:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        n = len(self.dataset)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


class _Endless(Sampler[None]):
    """For what has samples one after another: there is always a next."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


def _draw(generator: Generator | None) -> None:
    """Draws the seed of the workers, which are not there: so that what is drawn afterwards is as with them."""
    empty((), dtype=dtypes.int64, device="cpu").random_(generator=generator)


def _check_workers(workers: int, timeout: float, prefetch_factor: int | None, persistent: bool) -> None:
    if workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if workers == 0 and persistent:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_iterable(shuffle: bool | None, sampler: Any, batch_sampler: Any) -> None:
    if shuffle:
        raise ValueError(
            f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}"
        )
    for name, given in (("sampler", sampler), ("batch_sampler", batch_sampler)):
        if given is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={given}"
            )


def get_worker_info() -> None:
    """None: samples are loaded by the rank itself."""
