"""torch.nn.parallel.scatter and gather: a rank's tensors in parts on several devices, and together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.joining import cat, stack

__all__ = ["gather", "scatter", "scatter_kwargs"]


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Cuts tensors into a part for each device, and puts it there.

    Args:
        inputs: a tensor; or tuples, lists and dicts of such. What else is in them goes to each device as it is.
        target_gpus: devices, or their numbers.
        dim: the dimension along which they are cut, into parts as Tensor.chunk's.

    Returns:
        A part for each device: of a tensor a tuple, else a list. There are as many as the shortest tensor has.

    Raises:
        ValueError: one of the devices is the host.
    """
    places = [_checked(place) for place in target_gpus]
    return _scattered(inputs, places, dim)


def _checked(place: Any) -> Any:
    if not isinstance(place, int) and (place == "cpu" or getattr(place, "type", "") == "cpu"):
        raise ValueError(f"Expected a non cpu device, but got: {place}")
    return place


def _scattered(value: Any, places: Sequence[Any], dim: int) -> Any:
    if isinstance(value, Tensor):
        parts = value.chunk(len(places), dim)
        return tuple([part.to(place) for part, place in zip(parts, places, strict=False)])
    if isinstance(value, tuple | list) and value:
        columns = zip(*[_scattered(each, places, dim) for each in value], strict=False)
        if hasattr(value, "_fields"):
            return [type(value)(*each) for each in columns]
        return [type(value)(each) if isinstance(value, list) else each for each in columns]
    if isinstance(value, dict) and value:
        columns = zip(*[_scattered(item, places, dim) for item in value.items()], strict=False)
        return [type(value)(items) for items in columns]
    return [value for _ in places]


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Arguments and keyword arguments for each device; see scatter."""
    args = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    count = max(len(args), len(named))
    return (*args, *[()] * (count - len(args))), (*named, *[{}] * (count - len(named)))


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Puts tensors of several devices together on one.

    Args:
        outputs: for each device a tensor; or tuples, lists and dicts of such, of one structure.
        target_device: where to; -1 is the host.
        dim: the dimension along which they are joined. Numbers become a vector.

    Raises:
        AssertionError: a tensor is in the host's memory.
        ValueError: the structures differ.
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        return _joined(outputs, "cpu" if target_device == -1 else target_device, dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if not all(len(first) == len(each) for each in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gather([each[key] for each in outputs], target_device, dim)) for key in first)
    parts = [gather(each, target_device, dim) for each in zip(*outputs, strict=False)]
    return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)


def _joined(tensors: Sequence[Tensor], place: Any, dim: int) -> Tensor:
    if not all(t.is_cuda for t in tensors):
        raise AssertionError("Gather function not implemented for CPU tensors")
    moved = [t.to(place) for t in tensors]
    return cat(moved, dim) if moved[0].dim() else stack(moved)
