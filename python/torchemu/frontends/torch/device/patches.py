"""Replacements in PyTorch's modules and classes, which can be taken back."""

from __future__ import annotations

from typing import Any

_MISSING = object()


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
