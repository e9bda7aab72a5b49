"""Handing objects to ranks that have modules of their own.

An object of the program's classes means something else in each rank: there its class is another one, of the same name.
So it goes there as to another process, by pickle, which names classes and functions and does not copy them. What a
program hands to the processes that it starts goes so in any case: each has a list, an array or a module of its own.
Tensors are in the same memory, like those that PyTorch shares between processes.
"""

from __future__ import annotations

import copy
import io
import pickle
import types
from collections.abc import Collection, Mapping
from typing import Any

from torchemu.multiprocessing._shared import Handed, is_shared

_NAMED = (type, types.FunctionType)
_BETWEEN_RANKS = ("multiprocessing", "distributed", "_C")  # queues, locks, groups: the same for all
_CODE = (*_NAMED, types.ModuleType, types.BuiltinFunctionType)


class Parcel:
    """An object on its way to ranks.

    Args:
        value: the object.
        own: the names of the modules of which each rank has its own.
        shared: whether it is handed over as it is where none of their classes is in it.
        apart: whether what is PyTorch's in it is each rank's own, but for what tensors have in memory, and groups.
    """

    def __init__(self, value: Any, own: Collection[str], shared: bool = False, apart: bool = False) -> None:
        self._value, self._shared, self._apart = value, shared, apart
        self._kept: list[Any] = []
        self._pickled = self._packed(own)

    def _packed(self, own: Collection[str]) -> bytes | None:
        """The pickle; None where the object is to be handed over as it is, as are those that cannot be pickled."""
        file = io.BytesIO()
        pickler = _Pickler(file, own, self._kept, self._apart)
        try:
            pickler.dump(self._value)
        except Exception:
            return None
        return None if self._shared and not pickler.names_own else file.getvalue()

    def open(self, copies: dict[int, Any] | None = None) -> Any:
        """The object for the running rank.

        Args:
            copies: of tensors and what is made of them, as copy.deepcopy keeps them, which is to have them; None
                hands them over as they are.
        """
        if self._pickled is None:
            return self._value
        kept = Handed(self._kept) if self._apart else self._kept
        return _Unpickler(io.BytesIO(self._pickled), kept, copies).load()

    def is_packed(self) -> bool:
        """Reports whether the object could be pickled."""
        return self._pickled is not None


def _ours(module: Any) -> str | None:
    """The name of a module of torchemu within the package, whichever of its names it goes by; None of any other."""
    package, _, rest = str(module).partition(".")
    return (rest or package) if package in ("torch", "torchemu") else None


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, own: Collection[str], kept: list[Any], apart: bool) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.names_own = False
        self._own, self._kept, self._apart = own, kept, apart

    def persistent_id(self, obj: Any) -> int | None:
        """Keeps torchemu's objects; looks at which classes and functions the others name."""
        module = (obj if isinstance(obj, _NAMED) else type(obj)).__module__
        if module in self._own:
            self.names_own = True
        elif _ours(module) and not (self._apart and self._is_pytorchs_own(obj, module)):
            self._kept.append(obj)
            return len(self._kept) - 1
        return None

    def _is_pytorchs_own(self, obj: Any, module: str) -> bool:
        """Reports whether an object is one of PyTorch's that processes have of their own: a module, an optimizer."""
        is_between = (_ours(module) or "").startswith(_BETWEEN_RANKS)
        return module.startswith("torch.") and not isinstance(obj, _NAMED) and not is_between and not is_shared(obj)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, kept: list[Any] | Handed, copies: dict[int, Any] | None) -> None:
        super().__init__(file)
        self._kept, self._copies = kept, copies

    def persistent_load(self, pid: int) -> Any:
        kept = self._kept[pid]
        if self._copies is None or (_ours(type(kept).__module__) or "").startswith(_BETWEEN_RANKS):
            return kept
        return copy.deepcopy(kept, self._copies)


class Inheritance:
    """The variables of a forked process's main program: those of its parent by then.

    Its functions, classes and modules are its own, for it is loaded anew. Classes that are only defined in the part
    that is not, behind ``if __name__ == "__main__"``, are the parent's; functions from there use the variables of
    whoever runs them.

    Args:
        variables: of the parent's main program.
        own: as for Parcel.
    """

    def __init__(self, variables: Mapping[str, Any], own: Collection[str]) -> None:
        self._variables = variables
        named = {name: value for name, value in variables.items() if not name.startswith("__")}
        self._code = {name: value for name, value in named.items() if isinstance(value, _CODE)}
        self._values = {name: Parcel(value, own) for name, value in named.items() if name not in self._code}

    def put_into(self, variables: dict[str, Any]) -> None:
        """Sets the variables of the running rank's main program, which has been loaded."""
        missing = self._code.keys() - variables.keys()
        variables.update({name: self.bound(self._code[name], variables) for name in missing})
        copies: dict[int, Any] = {}
        variables.update({name: parcel.open(copies) for name, parcel in self._values.items()})

    def bound(self, value: Any, variables: dict[str, Any]) -> Any:
        """The value; a function that uses the parent's variables, as one that uses these."""
        if not isinstance(value, types.FunctionType) or value.__globals__ is not self._variables:
            return value
        function = types.FunctionType(value.__code__, variables, value.__name__, value.__defaults__, value.__closure__)
        function.__kwdefaults__ = value.__kwdefaults__
        return function
