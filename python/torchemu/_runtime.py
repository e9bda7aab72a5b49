"""Which World is open, and on behalf of which rank Python code is running."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torchemu import _handles
from torchemu._binding import go

if TYPE_CHECKING:
    from torchemu._tasks import Tasks
    from torchemu.distributed import ProcessGroup

DEFAULT_TOPOLOGY = "default"


class World:
    """One simulated cluster: a topology, an engine and network on it, and one rank for each SIP.

    Args:
        topology: a preset's name or the path of a topology.yaml.
        ccl: the path of a ccl.yaml; empty for the built-in one.
    """

    def __init__(self, topology: str | os.PathLike[str] = DEFAULT_TOPOLOGY, ccl: str | os.PathLike[str] = "") -> None:
        self.handle: int = go.OpenWorld(os.fspath(topology), os.fspath(ccl))
        about = json.loads(go.DescribeWorld(self.handle))
        self.topology: str = about["topology"]
        self.spec: dict[str, Any] = about["spec"]
        self.ccl: dict[str, Any] = about["ccl"]
        self.sips: int = about["sips"]
        self.algorithm: str = about["algorithm"]
        self.world_size: int = about["world_size"]
        self.main = Context(self, rank=0)
        self.is_open = True

    def collectives(self, first: int = 0) -> list[dict[str, Any]]:
        """The collectives that have completed, from number ``first`` on; times in ps, bandwidths in bytes/s."""
        return json.loads(go.Collectives(self.handle, first))

    def close(self) -> None:
        """Frees the World; its tensors and groups can no longer be used. What numpy() gave stays valid."""
        go.CloseWorld(self.handle)
        self.is_open = False
        _handles.release_gone()


class Context:
    """What belongs to one rank: in a real cluster, to one process."""

    def __init__(self, world: World, rank: int, tasks: Tasks | None = None, parent: Context | None = None) -> None:
        self.world = world
        self.rank = rank
        self.device = rank
        self.tasks = tasks
        self.inherited: ProcessGroup | None = parent.of_ranks() if parent is not None else None
        self.group: ProcessGroup | None = None

    def of_ranks(self) -> ProcessGroup | None:
        """The default group, where spawned ranks can have it too: a single worker's shards are not ranks to spawn."""
        group = self.group or self.inherited
        return None if group is None or group.sharded else group

    def wait(self, waitable: int) -> None:
        """Blocks this rank until the work, or what is pending on the tensor, behind the handle has ended."""
        if self.tasks is not None:
            self.tasks.wait(self.rank, waitable)
            return
        while not go.Await(self.world.handle, self.rank, waitable):
            pass  # a moment in Python, in which Ctrl-C is noticed

    def wait_for_all(self) -> None:
        """Blocks a program outside of any spawn until all that it has issued has ended."""
        while not go.AwaitAll(self.world.handle, self.rank):
            pass


_world: World | None = None
_context: Context | None = None


def current() -> Context:
    """The context of the running rank; opens the default World when none is open."""
    return _context if _context is not None else current_world().main


def current_world() -> World:
    """The open World; the default one when none is."""
    global _world
    if _world is None:
        _world = World()
    return _world


def switch_to(context: Context | None) -> Context | None:
    """Makes context that of the running code, and returns the one before."""
    global _context
    before, _context = _context, context
    return before


@contextlib.contextmanager
def opened(topology: str | os.PathLike[str] = DEFAULT_TOPOLOGY, ccl: str | os.PathLike[str] = "") -> Iterator[World]:
    """A World of its own for the duration of a with block; the one before is current again after it."""
    global _world
    before, _world = _world, World(topology, ccl)
    context = switch_to(None)
    try:
        yield _world
    finally:
        _world.close()
        _world = before
        switch_to(context)
