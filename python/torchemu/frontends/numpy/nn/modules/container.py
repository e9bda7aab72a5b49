"""Modules that hold modules in an order."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, Self

from torchemu.frontends.numpy.nn.modules.module import Module, _indented

__all__ = ["ModuleList", "Sequential"]


def _place(index: Any, length: int) -> int:
    """An index counted from the front.

    Raises:
        IndexError: there is none such.
    """
    at = operator.index(index)
    if not -length <= at < length:
        raise IndexError(f"index {at} is out of range")
    return at % length


class _Modules(Module):
    """Modules in an order, whose names are their numbers."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def _name(self, index: Any) -> str:
        return list(self._modules)[_place(index, len(self))]

    def append(self, module: Module) -> Self:
        """Puts a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError


class Sequential(_Modules):
    """Modules that are called one after the other, each with what the one before returned.

    Args:
        args: the modules; or one OrderedDict of them by name.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, input: Any) -> Any:  # noqa: A002 (PyTorch's name)
        """Returns what the last module returns."""
        for module in self:
            input = module(input)  # noqa: A001
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name(index)]


class ModuleList(_Modules):
    """A list of modules.

    Args:
        modules: what it begins with.
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend([] if modules is None else modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._modules[self._name(index)]

    def extend(self, modules: Iterable[Module]) -> Self:
        """Puts modules at the end.

        Raises:
            TypeError: not several modules.
        """
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in modules:
            self.append(module)
        return self

    def __repr__(self) -> str:
        groups: list[tuple[str, int]] = []  # a module's text, and how often it comes in a row
        for text in map(repr, self):
            again = bool(groups) and groups[-1][0] == text
            groups[-1:] = [(text, groups[-1][1] + 1)] if again else [*groups[-1:], (text, 1)]
        if not groups:
            return f"{self._get_name()}()"
        lines, start = [], 0
        for text, count in groups:
            place = f"({start}): " if count == 1 else f"({start}-{start + count - 1}): {count} x "
            lines.append(f"\n  {place}{_indented(text)}")
            start += count
        return f"{self._get_name()}({''.join(lines)}\n)"
