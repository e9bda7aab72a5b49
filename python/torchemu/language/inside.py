"""The view that a device program has of its rank: all but what is for the host's program."""

from __future__ import annotations

import linecache
import os
import sys
from typing import NoReturn

from torchemu import runtime

_KERNELS = os.path.join(runtime.PACKAGE, "language", "kernels", "")


class Inside(runtime.Context):
    """The context of a rank while a device program runs. Whoever needs the rank's stream, or waits, is told that it is
    not for device programs.

    Args:
        context: the rank's own, with which it shares everything else.
        name: what messages call the program.
        instead: what it is to use.
    """

    __slots__ = ("_instead", "_name")

    is_host = False

    def __init__(self, context: runtime.Context, name: str, instead: str) -> None:
        self.__dict__ = context.__dict__
        self._name, self._instead = name, instead

    @property
    def stream(self) -> int:
        """Raises RuntimeError: operations of tensors, collectives and launches begin by asking for it."""
        self.refuse()

    @stream.setter
    def stream(self, value: int) -> None:
        self.refuse()

    def wait(self, waitable: int) -> bool:
        """Raises RuntimeError."""
        self.refuse()

    def wait_for_all(self) -> None:
        """Raises RuntimeError."""
        self.refuse()

    def refuse(self) -> NoReturn:
        """Raises RuntimeError: the program has called something that is for its host."""
        frame = sys._getframe(1)
        while frame.f_back is not None and _is_internal(frame.f_code.co_filename):
            frame = frame.f_back
        file, line = frame.f_code.co_filename, frame.f_lineno
        raise RuntimeError(
            f"kernel {self._name} uses an operation of its host at {os.path.basename(file)}:{line}: "
            f"{linecache.getline(file, line).strip()}\nA kernel uses {self._instead}, and NumPy. Tensors, collectives, "
            "streams and stores are for the host's program, before or after the launch."
        )


def _is_internal(file: str) -> bool:
    """Reports whether a file is of this package, and no kernel that it ships."""
    return file.startswith(runtime.PACKAGE) and not file.startswith(_KERNELS)
