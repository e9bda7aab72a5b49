"""Modules that hold modules, or parameters, in an order or by name."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, ValuesView
from typing import Any, Self

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn.modules.module import Module, _indented
from torchemu.frontends.numpy.nn.parameter import Parameter

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


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

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name(index), module)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)
        for name in names[index] if isinstance(index, slice) else [self._name(index)]:
            delattr(self, name)
        self._renumber(list(self._modules.values()))

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def _renumber(self, modules: Iterable[Any]) -> None:
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def append(self, module: Module) -> Self:
        """Puts a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: int | slice) -> Any:
        """Takes the module at an index, or several, out, and returns what it was."""
        found = self[key]
        del self[key]
        return found

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
        """What the last module returns."""
        for module in self:
            input = module(input)  # noqa: A001
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name(index)]

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Puts modules at the end."""
        for module in sequential:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Puts a module before the one at the index."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)


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

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def insert(self, index: int, module: Module) -> None:
        """Puts a module before the one at the index."""
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)

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


class ModuleDict(Module):
    """Modules by name.

    Args:
        modules: what it begins with: a mapping, or pairs.
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        self.update({} if modules is None else modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Takes all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Takes a module out, and returns it."""
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Any]:
        """The names and the modules."""
        return self._modules.items()

    def values(self) -> ValuesView[Any]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds modules.

        Raises:
            TypeError: neither a mapping nor pairs. ValueError: a pair has another length.
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(modules).__name__}"
            )
        for name, module in _pairs("ModuleDict", modules):
            self[name] = module


def _pairs(what: str, given: Any) -> Iterator[tuple[str, Any]]:
    """The pairs of a mapping, or those that are given.

    Raises:
        TypeError, ValueError: something among them is no pair.
    """
    if hasattr(given, "items"):
        yield from given.items()
        return
    for at, pair in enumerate(given):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{what} update sequence element #{at} should be Iterable; is{type(pair).__name__}")
        pair = list(pair)
        if len(pair) != 2:
            raise ValueError(f"{what} update sequence element #{at} has length {len(pair)}; 2 is required")
        yield pair[0], pair[1]


def _kept(value: Any) -> Any:
    """What a list or dictionary of parameters keeps: tensors as parameters."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


class ParameterList(Module):
    """A list of parameters, and of other values; tensors become parameters.

    Args:
        values: what it begins with.
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        self.extend([] if values is None else values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, str(i)) for i in range(self._size)])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, str(_place(index, self._size)))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(_place(index, self._size)), _kept(value))

    def append(self, value: Any) -> Self:
        """Puts a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Puts values at the end.

        Raises:
            TypeError: not several values.
        """
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def __repr__(self) -> str:
        lines = [f"\n    ({i}): {_described(value)}" for i, value in enumerate(self)]
        return f"{self._get_name()}({''.join(lines)}\n)" if lines else f"{self._get_name()}()"


def _described(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    what = "Parameter" if isinstance(value, Parameter) else "Tensor"
    shape = "x".join(map(str, value.shape))
    place = f" ({value.device})" if value.is_cuda else ""
    return f"{what} containing: [{value.dtype} of size {shape}{place}]"


class ParameterDict(Module):
    """Parameters, and other values, by name; tensors become parameters.

    Args:
        parameters: what it begins with: a mapping, or pairs.
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._names: dict[str, None] = {}
        self.update({} if parameters is None else parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._names:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        self._names[key] = None
        setattr(self, key, _kept(value))

    def __delitem__(self, key: str) -> None:
        del self._names[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, key: str) -> bool:
        return key in self._names

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._names.keys()

    def items(self) -> Iterator[tuple[str, Any]]:
        """The names and the values."""
        return ((name, self[name]) for name in self._names)

    def values(self) -> Iterator[Any]:
        """The values."""
        return (self[name] for name in self._names)

    def update(self, parameters: Any) -> None:
        """Adds values."""
        for name, value in _pairs("ParametersDict", parameters):
            self[name] = value

    def __repr__(self) -> str:
        lines = [f"\n    ({name}): {_described(value)}" for name, value in self.items()]
        return f"{self._get_name()}({''.join(lines)}\n)" if lines else f"{self._get_name()}()"
