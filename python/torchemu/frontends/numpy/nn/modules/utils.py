"""torch.nn.modules.utils: sizes that are given as one number or as one for each dimension."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(itertools.repeat(x, n))

    parse.__name__ = name
    return parse


_single, _pair, _triple, _quadruple = (
    _ntuple(n, name) for n, name in enumerate(("_single", "_pair", "_triple", "_quadruple"), 1)
)


def _reverse_repeat_tuple(t: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    return tuple(x for x in reversed(t) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Takes a prefix off all names that have it, such as the "module." of DistributedDataParallel."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    for key in list(getattr(state_dict, "_metadata", {})):
        if key and key.startswith(prefix.rstrip(".")):
            state_dict._metadata[key[len(prefix) :]] = state_dict._metadata.pop(key)  # type: ignore[attr-defined]
