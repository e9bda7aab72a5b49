"""Recordings of the Go core: what ranks and their devices did, and the files that are made of it."""

from __future__ import annotations

import json
import os
import weakref
from dataclasses import dataclass
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle

LEVELS = ("collective", "step", "link")
"""How much a recording has: each level has what those before it have."""

ALL = -1  # ranks


class Recording:
    """A recording in the making, or done.

    Args:
        world: of what.
        level: one of LEVELS.

    Raises:
        ValueError: there is no such level.
    """

    def __init__(self, world: runtime.World, level: str = LEVELS[0]) -> None:
        self._world = world
        self.ended = False
        self._handle = Handle(go.StartRecording(world.handle, level))
        world.recordings += 1

    def open(self, rank: int = ALL) -> None:
        """Takes what the rank's host calls for from now on."""
        go.OpenRecording(self._handle.number, rank)

    def close(self, rank: int = ALL) -> None:
        """Takes nothing more of what the rank's host calls for from now on."""
        go.CloseRecording(self._handle.number, rank)

    def end(self) -> None:
        """Takes nothing more. Ending twice does nothing."""
        if not self.ended:
            self.ended = True
            go.EndRecording(self._handle.number)
            self._world.recordings -= 1

    def write(self, path: str | os.PathLike[str], form: str, **options: Any) -> None:
        """Writes a file, see go.WriteRecording; a name that ends in .gz is compressed.

        Raises:
            OSError, ValueError: it cannot be written.
        """
        go.WriteRecording(self._handle.number, os.fspath(path), form, json.dumps(options))

    def events(self, **options: Any) -> dict[str, Any]:
        """Returns the events that write() writes in form kineto, with times to the picosecond, where files have
        nanoseconds."""
        return json.loads(go.ReadRecording(self._handle.number, json.dumps({**options, "exact": True})))

    def fabric(self) -> dict[str, Any]:
        """When it was, on what, and what the links have carried; see go.RecordedFabric."""
        return json.loads(go.RecordedFabric(self._handle.number))


@dataclass
class Known:
    """The recordings that a World has.

    Attributes:
        requested: the recording of the run, where that is of what the program profiles only.
    """

    requested: Recording | None = None


_worlds: weakref.WeakKeyDictionary[runtime.World, Known] = weakref.WeakKeyDictionary()


def known(world: runtime.World) -> Known:
    """The recordings that a World has."""
    found = _worlds.get(world)
    if found is None:
        found = _worlds[world] = Known()
    return found


def of_profile(own: Recording) -> list[Recording]:
    """Returns the recordings that take what a rank does while it profiles: its own, and the run's where that is of what
    programs profile only. Those that have ended are left out."""
    both = (own, known(runtime.current().world).requested)
    return [recording for recording in both if recording is not None and not recording.ended]
