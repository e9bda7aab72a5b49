"""Names that there are in the original and not here. They can be imported, and say so when they are called."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any


class Placeholder:
    """Something that is not emulated. It passes through decorators, annotations, subscripts and comparisons.

    Args:
        name: the full one.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Placeholder(f"{self.__name__}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and (callable(args[0]) and not isinstance(args[0], Placeholder)):
            return args[0]  # a decorator
        raise NotImplementedError(
            f"{self.__name__} is not emulated: the program imports it, and has now called it. torchemu has the "
            "functions that docs/triton.md lists"
        )

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return (object,)

    def __getitem__(self, key: Any) -> Placeholder:
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __or__(self, other: Any) -> Placeholder:
        return self

    __ror__ = __and__ = __rand__ = __or__

    def __lt__(self, other: Any) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__

    def __repr__(self) -> str:
        return f"<{self.__name__}, which is not emulated>"


def placeholders(module: str, is_package: bool = False) -> Callable[[str], Any]:
    """Returns a module's ``__getattr__``, which gives placeholders for names that it does not have.

    Args:
        module: the name by which programs know it.
        is_package: it may have modules of such names, which are imported then.
    """

    def find(name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        full = f"{module}.{name}"
        if is_package and module in sys.modules:
            try:
                return importlib.import_module(full)
            except ModuleNotFoundError as error:
                if error.name != full:
                    raise
        return Placeholder(full)

    return find
