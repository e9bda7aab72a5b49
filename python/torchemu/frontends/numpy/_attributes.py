"""Places where instances keep their attributes."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def foresee_attributes(cls: type[T]) -> type[T]:
    """Makes room in a class's instances, of which there are none yet, for all attributes that it annotates.

    CPython keeps the values of attributes side by side, in places that the first thirty or so instances give to names.
    An instance that later sets a name without a place gets a dictionary: it takes twice as long to make, and longer to
    use. So one instance has all of them, in which the others have only what was set.
    """
    first = object.__new__(cls)
    for name in cls.__annotations__:
        if not isinstance(getattr(cls, name, None), property):
            setattr(first, name, None)
    return cls
