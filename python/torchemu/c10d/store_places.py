"""Meeting places by name: the stores that a spawn, or the program around it, has under hosts, ports and files."""

from __future__ import annotations

import itertools
import weakref
from collections import defaultdict

from torchemu import runtime
from torchemu.c10d.store_table import Table, request
from torchemu.runtime import footprints
from torchemu.runtime.waiting import Line

Where = tuple[str, ...]
"""The kind of a name, and the name."""

_FREE_PORTS = range(49152, 1 << 16)  # that systems give to programs which ask for any


class Places:
    """Names of one spawn, or of the program outside of any. They end with it."""

    def __init__(self, outer: Places | None = None) -> None:
        self._outer = outer
        self._tables: dict[Where, Table] = {}
        self._masters: dict[Where, weakref.ref[object]] = {}
        self._arrivals: defaultdict[Where, Line] = defaultdict(Line)
        self._ports = itertools.cycle(_FREE_PORTS)

    def find(self, where: Where) -> Table | None:
        """Returns what is there; names of the program around a spawn count, where the spawn has none of its own."""
        found = self._tables.get(where)
        return found if found is not None or self._outer is None else self._outer.find(where)

    def go(self, where: Where, kind: int) -> None:
        """Passes the time to get there; the kind of use is as of footprints."""
        request()
        footprints.use_one(where, kind)

    def open(self, where: Where, table: Table) -> Table:
        """Puts a new table there, and lets those go on that wait for one."""
        self._tables[where] = table
        self._arrivals[where].call_all()
        return table

    def arrivals(self, where: Where) -> Line:
        """The line of ranks that wait until something is there."""
        return self._arrivals[where]

    def serve(self, where: Where, master: object) -> None:
        """Notes who serves what is there."""
        self._masters[where] = weakref.ref(master)

    def is_served(self, where: Where) -> bool:
        """Returns whether one who serves what is there still exists."""
        footprints.use(footprints.ENDS, footprints.LOOKING)
        master = self._masters.get(where)
        if master is not None and master() is not None:
            return True
        return self._outer is not None and self._outer.is_served(where)

    def free_port(self) -> int:
        """A port that nobody has a store at, and that nobody else who asks is told."""
        return next(port for port in self._ports if self.find(("tcp", "localhost", str(port))) is None)


def places() -> Places:
    """Returns the places of the running rank."""
    return _places_of(runtime.current())


def _places_of(context: runtime.Context) -> Places:
    kept = context.own if context.tasks is None else context.tasks.shared
    if Places not in kept:
        kept[Places] = Places(_places_of(context.parent) if context.parent is not None else None)
    return kept[Places]
