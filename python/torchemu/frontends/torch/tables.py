"""Tables of PyTorch's in which programs enter something: each rank sees its own entries, as a process does.

What an installed package enters while it is loaded is for all ranks, as it is loaded once.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, MutableMapping
from typing import Any

from torchemu import runtime
from torchemu.runtime.frames import is_installed


def definer() -> runtime.Context | None:
    """Returns the rank whose program is entering something; None where an installed package does, as it is loaded."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    if frame is not None and frame.f_globals["__name__"] != "__main__" and is_installed(frame.f_code.co_filename):
        return None
    return runtime.running()


class OfRanks(MutableMapping[Any, Any]):
    """A table of PyTorch's, of which each rank sees its own entries and those that were there before.

    Args:
        before: what was there.
        for_all: a rank sees what another one has where it has nothing itself: a package may have been loaded there.
    """

    def __init__(self, before: MutableMapping[Any, Any], for_all: bool) -> None:
        self._before, self._for_all = before, for_all
        self._own: dict[runtime.Context | None, MutableMapping[Any, Any]] = {None: before}

    def _of(self, context: runtime.Context | None) -> MutableMapping[Any, Any]:
        if context not in self._own:
            self._own[context] = type(self._before)()
        return self._own[context]

    def __getitem__(self, name: Any) -> Any:
        for table in (self._of(runtime.running()), self._before, *(self._own.values() if self._for_all else ())):
            if name in table:
                return table[name]
        raise KeyError(name)

    def own(self) -> MutableMapping[Any, Any]:
        """Returns the entries of who is registering something."""
        return self._of(definer())

    def __setitem__(self, name: Any, value: Any) -> None:
        self.own()[name] = value

    def __delitem__(self, name: Any) -> None:
        del self.own()[name]

    def __iter__(self) -> Iterator[Any]:
        return iter({**self._before, **self._of(runtime.running())})

    def __len__(self) -> int:
        return len(list(iter(self)))
