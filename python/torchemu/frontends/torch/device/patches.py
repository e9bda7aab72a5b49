"""Replacements in PyTorch's modules and classes, which can be taken back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch.overrides import handle_torch_function, has_torch_function

_MISSING = object()


def overridable(function: Callable[..., Any], original: Any) -> Callable[..., Any]:
    """Makes a function that first asks the classes of its arguments, as PyTorch's do, and names itself to them.

    Programs compare what they are told with what they know: the function in PyTorch's place.

    Each run puts the same function in place, which modules may have noted in an earlier one.

    Args:
        function: what it does where no class has an answer.
        original: PyTorch's.
    """
    made = _made.get(original)
    if made is not None:
        return made

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values()) if kwargs else args
        if has_torch_function(given):
            return handle_torch_function(call, given, *args, **kwargs)
        return function(*args, **kwargs)

    _made[original] = call
    return call


_made: dict[Any, Callable[..., Any]] = {}
"""Functions in the place of PyTorch's."""


class Replacements:
    """Attributes that have been put in place of PyTorch's own."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def put(self, owner: Any, name: str, value: Any) -> Any:
        """Replaces an attribute of a module or a class, or adds it. Returns what was there, for who has to call it."""
        self._before.append((owner, name, vars(owner).get(name, _MISSING)))
        found = getattr(owner, name, None)
        setattr(owner, name, value)
        return found

    def put_all(self, owner: Any, values: dict[str, Any]) -> None:
        """Replaces several."""
        for name, value in values.items():
            self.put(owner, name, value)

    def take_back(self) -> None:
        """Puts PyTorch's own back."""
        while self._before:
            owner, name, value = self._before.pop()
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
