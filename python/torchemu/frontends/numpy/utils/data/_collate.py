"""How samples become a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._tensor import Tensor, as_tensor, stack, tensor

_TEXT = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def default_collate(batch: Sequence[Any]) -> Any:
    """Samples as one: tensors are stacked, numbers become a tensor, and what holds samples holds batches.

    Raises:
        TypeError: samples of another kind.
        RuntimeError: sequences of different lengths.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(list(batch), 0)
    if isinstance(first, np.ndarray | np.generic):
        return _of_numpy(batch)
    if isinstance(first, float):
        return tensor(batch, dtype=dtypes.float64)
    if isinstance(first, int):
        return tensor(batch)
    if isinstance(first, str | bytes):
        return batch
    return _of_containers(batch, default_collate, _TEXT.format(type(first)))


def _of_numpy(batch: Sequence[Any]) -> Any:
    kind = batch[0].dtype.kind
    if kind in "SUO":
        raise TypeError(_TEXT.format(batch[0].dtype))
    return default_collate([as_tensor(b) for b in batch]) if np.ndim(batch[0]) else as_tensor(np.asarray(batch))


def _of_containers(batch: Sequence[Any], collate: Callable[[Sequence[Any]], Any], text: str) -> Any:
    first = batch[0]
    if isinstance(first, Mapping):
        return _like(first, {key: collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(collate(parts) for parts in zip(*batch, strict=False)))
    if not isinstance(first, Sequence):
        raise TypeError(text)
    if any(len(sample) != len(first) for sample in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    parts = [collate(parts) for parts in zip(*batch, strict=True)]
    return parts if isinstance(first, tuple) else _like(first, parts)


def _like(first: Any, made: Any) -> Any:
    """Of the samples' own type, where that can be made of what it holds."""
    try:
        return type(first)(made)
    except TypeError:
        return made


def default_convert(data: Any) -> Any:
    """A sample by itself: NumPy's arrays become tensors."""
    if isinstance(data, np.ndarray | np.generic) and data.dtype.kind not in "SUO":
        return as_tensor(data)
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _like(data, [default_convert(value) for value in data])
    return data
