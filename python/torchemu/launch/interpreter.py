"""The state that Python keeps once for a process, and that each rank has for itself here."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from _thread import get_ident
from collections.abc import Mapping
from typing import Any

_SHARED: Any = os.environ
"""The object that whoever has imported environ from os uses. A program may put another one in os, as datasets does."""


def variables(of: Any = None) -> dict[bytes, bytes]:
    """Returns the variables of an object that is, or was, os.environ; without one, of that which is it now."""
    of = os.environ if of is None else of
    if isinstance(of, type(_SHARED)):
        return of._data
    return {os.fsencode(name): os.fsencode(value) for name, value in of.items()}


class Interpreter:
    """The state of one rank, or that outside of all ranks; at first, the state in place.

    It is exchanged at every switch, so this is written out, which is fastest.
    """

    def __init__(self) -> None:
        self.save()

    def save(self) -> None:
        """Takes over the state in place, which is this one's but for what the rank has changed."""
        self.argv, self.path = sys.argv, sys.path
        self.stdout, self.stderr = sys.stdout, sys.stderr
        self.excepthook, self.unraisablehook = sys.excepthook, sys.unraisablehook
        self.shown, self.environ = os.environ, _SHARED._data
        self.records, self.kind = logging._logRecordFactory, logging._loggerClass  # type: ignore[attr-defined]
        self.captured = logging._warnings_showwarning  # type: ignore[attr-defined]
        self.filters = warnings.filters
        self.showwarning = warnings.showwarning
        self.showwarnmsg = warnings._showwarnmsg_impl  # type: ignore[attr-defined]
        asyncio = sys.modules.get("_asyncio")
        self.loop = asyncio._get_running_loop() if asyncio is not None else None
        self.thread = get_ident()

    def restore(self) -> None:
        """Puts the state in place."""
        sys.argv, sys.path = self.argv, self.path
        sys.stdout, sys.stderr = self.stdout, self.stderr
        sys.excepthook, sys.unraisablehook = self.excepthook, self.unraisablehook
        os.environ, _SHARED._data = self.shown, self.environ
        os.environb._data = self.environ  # type: ignore[attr-defined]
        logging._logRecordFactory, logging._loggerClass = self.records, self.kind  # type: ignore[attr-defined]
        logging._warnings_showwarning = self.captured  # type: ignore[attr-defined]
        warnings.filters = self.filters
        warnings.showwarning = self.showwarning
        warnings._showwarnmsg_impl = self.showwarnmsg  # type: ignore[attr-defined]
        asyncio = sys.modules.get("_asyncio")
        if asyncio is not None and self.thread == get_ident():  # threads of the system have loops of their own
            asyncio._set_running_loop(self.loop)

    def copy(self) -> Interpreter:
        """Returns the state of a process that starts from this one."""
        child = Interpreter.__new__(Interpreter)
        vars(child).update(vars(self))
        child.argv, child.path, child.filters = list(self.argv), list(self.path), list(self.filters)
        child.shown, child.environ = _SHARED, dict(self.variables())
        child.loop = None
        return child

    def variables(self) -> dict[bytes, bytes]:
        """Returns the environment that the rank's program sees."""
        return self.environ if self.shown is _SHARED else variables(self.shown)

    def setenv(self, variables: Mapping[str, str]) -> None:
        """Sets environment variables."""
        self.environ.update((os.fsencode(name), os.fsencode(value)) for name, value in variables.items())
