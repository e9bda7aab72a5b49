"""Worlds that are current without a ``with`` block."""

from __future__ import annotations

import os
from typing import Any, Self, TypeVar

from torchemu.runtime import world as _worlds
from torchemu.runtime.world import World


class HeldWorld(World):
    """A World that is current from its making until it is closed."""

    def __init__(self, topology: str | os.PathLike[str], ccl: str | os.PathLike[str] = "") -> None:
        super().__init__(topology, ccl)
        self.is_entered = False
        self._before: tuple[World | None, Any] | None = None

    def become_current(self) -> None:
        """Makes it the current World; close() makes the one before current again."""
        before, _worlds._world = _worlds._world, self
        self._before = before, _worlds.switch_to(None)

    def close(self) -> None:
        """Frees the World; its tensors and groups can no longer be used. Closing twice does nothing."""
        if not self.is_open:
            return
        super().close()
        if _worlds._world is self and self._before is not None:
            _worlds._world, context = self._before
            _worlds.switch_to(context)
        self._before = None

    def __enter__(self) -> Self:
        self.is_entered = True
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_Held = TypeVar("_Held", bound=HeldWorld)


def hold(kind: type[_Held], topology: str | os.PathLike[str], ccl: str | os.PathLike[str]) -> _Held:
    """Makes a World of a kind current. One that was held before, and not for a ``with`` block, is closed.

    Raises:
        OSError, ValueError: something is wrong in one of the files; then the World before stays as it is.
    """
    world = kind(topology, ccl)
    before = _worlds._world
    if isinstance(before, HeldWorld) and not before.is_entered:
        before.close()
    world.become_current()
    return world


def is_any_open() -> bool:
    """Reports whether a World is open."""
    return _worlds._world is not None
