"""Names that PyTorch has and this front end has not: each says so in one sentence, when it is imported or used.

The NumPy front end has what benches, kernels, collectives and Megatron's layers need; programs that need more run on
the installed PyTorch (``torchemu run --torch real``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

_PACKAGE = "torchemu.frontends.numpy"


def missing(name: str) -> str:
    """Says that there is nothing of a name, such as torch.nn.Conv2d, and where it is."""
    return f"torchemu's NumPy front end has no {name}: run with --torch real (pip install torchemu[torch])"


def lacks(module: str) -> Callable[[str], NoReturn]:
    """Makes the ``__getattr__`` of a module: an AttributeError, or what ``from module import name`` raises."""
    vars(sys.modules[module]).setdefault("__path__", [])  # so that `from` asks the finder below for the name

    def getattr_of_module(attribute: str) -> NoReturn:
        raise AttributeError(missing(f"{_of_torch(module)}.{attribute}"))

    return getattr_of_module


class TensorType(type):
    """The type of Tensor: the class says, as its tensors do, that it has not what it is asked for."""

    if not TYPE_CHECKING:  # which is not to believe that there is everything

        def __getattr__(cls, name: str) -> NoReturn:
            raise AttributeError(missing(f"torch.Tensor.{name}"))


def _of_torch(module: str) -> str:
    return "torch" + module.removeprefix(_PACKAGE)


class _Last(MetaPathFinder):
    """Is asked for a module of this front end when no other finder has it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raises ModuleNotFoundError for modules of PyTorch's."""
        if fullname.startswith(f"{_PACKAGE}."):
            name = _of_torch(fullname)
            raise ModuleNotFoundError(missing(name), name=name)
        return None


sys.meta_path.append(_Last())
