"""Nested dictionaries and lists as one dictionary, whose keys are paths such as "model.0.weight"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor

Path = tuple[Any, ...]


def _is_whole(value: Any) -> bool:
    """Whether a list is saved as one object: it has no tensors and no dictionaries in it."""
    if isinstance(value, Mapping):
        return False
    if not isinstance(value, list):
        return True
    return all(_is_whole(each) and not isinstance(each, Tensor) for each in value)


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """What is saved by itself, with the keys that lead to it. Empty dictionaries are not."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from leaves(each, (*path, key))
    elif _is_whole(value):
        yield path, value
    else:
        for number, each in enumerate(value):
            yield from leaves(each, (*path, number))


def by_name(value: Any) -> dict[str, tuple[Path, Any]]:
    """The leaves and the paths to them, by the texts of the paths.

    Raises:
        ValueError: two paths have the same.
    """
    found: dict[str, tuple[Path, Any]] = {}
    for path, leaf in leaves(value):
        name = ".".join(map(str, path))
        if name in found:
            raise ValueError(f"duplicated flatten key {name}")
        found[name] = path, leaf
    return found


def put(root: Any, path: Path, value: Any) -> None:
    """Sets what a path leads to."""
    *way, last = path
    for key in way:
        root = root[key]
    root[last] = value
