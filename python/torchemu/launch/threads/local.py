"""Attributes that each thread of a rank has for itself."""

from __future__ import annotations

import _thread
import weakref
from typing import Any, NoReturn

from torchemu.launch.threads.locks import is_foreign
from torchemu.runtime.rank_local import ThreadLocal


class _Key:
    """Stands for a Local where its attributes are kept, and ends with it.

    Args:
        args, kwargs: those that it was made with.

    Attributes:
        foreign: what threads of the system have of it.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs = args, kwargs
        self.foreign = _thread._local()

    def find(self) -> dict[str, Any] | None:
        """The running thread's attributes, if it has any."""
        found: dict[str, Any] | None = vars(self.foreign).get("own") if is_foreign() else _kept.get().get(self)
        return found

    def keep(self, own: dict[str, Any]) -> None:
        """Makes these the running thread's."""
        if is_foreign():
            self.foreign.own = own
        else:
            _kept.get()[self] = own


_kept: ThreadLocal[weakref.WeakKeyDictionary[_Key, dict[str, Any]]] = ThreadLocal(weakref.WeakKeyDictionary)


class Local:
    """Acts as threading.local. A class derived from it has its __init__ called in each thread."""

    __module__, __qualname__ = "_thread", "_local"  # as programs see it
    __slots__ = ("__dict__", "__weakref__", "_local__key")

    _local__key: _Key

    def __new__(cls, /, *args: Any, **kwargs: Any) -> Local:
        if (args or kwargs) and cls.__init__ is object.__init__:
            raise TypeError("Initialization arguments are not supported")
        self = object.__new__(cls)
        key = _Key(args, kwargs)
        object.__setattr__(self, "_local__key", key)
        key.keep(object.__getattribute__(self, "__dict__"))
        return self

    def __getattribute__(self, name: str) -> Any:
        _put_in_place(self)
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._check(name)
        _put_in_place(self)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        self._check(name)
        _put_in_place(self)
        object.__delattr__(self, name)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"cannot pickle {_name(self)!r} object")

    def _check(self, name: str) -> None:
        if name == "__dict__":
            raise AttributeError(f"{_name(self)!r} object attribute '__dict__' is read-only")


def _name(local: Local) -> str:
    return "_thread._local" if type(local) is Local else type(local).__name__


def _put_in_place(local: Local) -> None:
    """Makes the running thread's attributes those of the object."""
    key: _Key = object.__getattribute__(local, "_local__key")
    own = key.find()
    if own is not None:
        object.__setattr__(local, "__dict__", own)
        return
    own = {}
    key.keep(own)
    object.__setattr__(local, "__dict__", own)
    type(local).__init__(local, *key.args, **key.kwargs)
