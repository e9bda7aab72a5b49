"""Frames of a traceback: the program's, and others'.

Others are not where the mistake is: torchemu's own, and those of NumPy and the standard library where it calls them.
"""

from __future__ import annotations

import os
import sysconfig
import traceback
from collections.abc import Callable, Iterable

import numpy as np

from torchemu import runtime

_NUMPY = os.path.dirname(np.__file__) + os.sep
STANDARD = tuple(os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib"))
"""The folders of the standard library."""

_FROZEN = "<frozen "
"""Begins the names of files of modules that are part of the interpreter, such as os and genericpath."""

_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
"""Parts of the paths of installed packages, which may be in a folder of the standard library."""


def _targets(paths: str) -> tuple[str, ...]:
    """Returns the folders of a search path that pip has installed packages into, as with --target: it has left its
    records there."""
    folders = [os.path.join(os.path.abspath(path), "") for path in paths.split(os.pathsep) if os.path.isdir(path)]
    return tuple(folder for folder in folders if any(name.endswith(".dist-info") for name in os.listdir(folder)))


_TARGETS = _targets(os.environ.get("PYTHONPATH", ""))


def is_ours(file: str) -> bool:
    """Reports whether a file is torchemu's."""
    return file.startswith(runtime.PACKAGE)


def is_pythons(file: str) -> bool:
    """Reports whether a file is of Python's own library, of which the interpreter has some as part of itself."""
    return file.startswith(_FROZEN) or (file.startswith(STANDARD) and not is_installed(file))


def is_installed(file: str) -> bool:
    """Reports whether a file is of an installed package."""
    return any(part in file for part in _INSTALLED) or file.startswith(_TARGETS)


def of_program(files: Iterable[str], ours: Callable[[str], bool] = is_ours) -> list[bool]:
    """Returns a traceback's frames that are the program's.

    Args:
        files: of the frames, the outermost first.
        ours: whether a file is none of the program's.
    """
    shown: list[bool] = []
    inside = False  # torchemu, which the program has called
    for file in files:
        if ours(file):
            inside = any(shown)
            shown.append(False)
            continue
        inside = inside and _is_called(file)
        shown.append(not inside)
    return shown


def _is_called(file: str) -> bool:
    """Reports whether a file is of what torchemu calls, which may call the program in turn."""
    return file.startswith(_NUMPY) or is_pythons(file)


def cut(trace: traceback.TracebackException, ours: Callable[[str], bool] = is_ours) -> None:
    """Leaves the frames of a traceback that are the program's; those of its causes stay.

    Args:
        trace: is changed.
        ours: see of_program.
    """
    shown = of_program((frame.filename for frame in trace.stack), ours)
    trace.stack[:] = [frame for frame, is_shown in zip(trace.stack, shown, strict=True) if is_shown]
