"""Worlds and ranks for notebooks and for Python's prompt."""

from __future__ import annotations

import html
import inspect
import os
from collections.abc import Callable
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.c10d import lifecycle
from torchemu.multiprocessing import SpawnException, spawn
from torchemu.runtime import fabric, held_worlds

_PS_PER_US = 1e6


class World(held_worlds.HeldWorld):
    """A World that is current from its making until it is closed, with or without a ``with`` block."""

    def _repr_html_(self) -> str:
        """Draws the topology, for notebooks."""
        about = f"<b>{html.escape(self.topology)}</b>: {self.sips} SIPs" + ("" if self.is_open else ", closed")
        try:
            return f"<div>{about}</div>{go.ShowTopology(self.source, True)}"
        except (OSError, ValueError, RuntimeError):  # its file has changed, or is gone
            return f"<div>{about}</div>"


def open_world(topology: str | os.PathLike[str] = runtime.DEFAULT_TOPOLOGY, ccl: str | os.PathLike[str] = "") -> World:
    """Opens a World and makes it current: tensors and ranks are its own from now on.

    In a ``with`` block it is closed at the block's end. Without one it holds until its ``close()``, or until
    ``open_world`` is called again: so a notebook's cell may be run as often as one likes.

    Args:
        topology: a preset's name or the path of a topology.yaml.
        ccl: the path of a ccl.yaml; empty for the built-in one.

    Raises:
        OSError, ValueError: something is wrong in one of the files.
    """
    return held_worlds.hold(World, topology, ccl)


def run_ranks(function: Callable[..., Any], nprocs: int | None = None, *args: Any) -> list[Any]:
    """Calls a function on each of several ranks, and returns what it returns there.

    The ranks run in the current World. Where none is open they run in one of their own, which is closed afterwards,
    tensors included: return numbers, lists or arrays then. All have a default process group already.

    Args:
        function: what to call; with the rank before the arguments, where it takes one argument more than there are.
        nprocs: how many ranks; without it one for each SIP.
        args: passed on as they are.

    Returns:
        What the function has returned, by rank.

    Raises:
        What the first rank to fail raised, with a note that says which one it was. KeyboardInterrupt: the user has
        interrupted it. ValueError: nprocs is not positive, or the World has fewer SIPs.
    """
    if nprocs is not None and nprocs < 1:
        raise ValueError(f"nprocs must be at least 1, not {nprocs}")
    if held_worlds.is_any_open():
        return _run(function, nprocs or runtime.current_world().sips, args)
    with fabric.fitting(runtime.DEFAULT_TOPOLOGY, 1, nprocs or 1) as topology, runtime.opened(topology) as world:
        return _run(function, nprocs or world.sips, args)


def _run(function: Callable[..., Any], nprocs: int, args: tuple[Any, ...]) -> list[Any]:
    world = runtime.current_world()
    if nprocs > world.sips:
        raise ValueError(
            f"nprocs is {nprocs}, and the World has {world.sips} SIPs, of topology {world.topology!r}: "
            "open one with more"
        )
    values: list[Any] = [None] * nprocs
    takes_rank = _takes(function, len(args) + 1)

    def program(rank: int) -> None:
        if runtime.current().group is None:
            lifecycle.init_process_group()
        values[rank] = function(rank, *args) if takes_rank else function(*args)

    try:
        spawn(program, nprocs=nprocs)
    except SpawnException as failed:
        raise _cause(failed) from None
    except KeyboardInterrupt as interrupt:
        raise KeyboardInterrupt(_interrupted(interrupt, world)) from None
    return values


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Reports whether a function can be called with so many arguments."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # nobody knows
        return True
    return True


def _cause(failed: SpawnException) -> BaseException:
    first = failed.errors[0]
    error = first.exception
    error.add_note(
        f"This is rank {first.rank}, the first to fail, at {first.time_ps / _PS_PER_US:.6g} us of simulated time."
    )
    return error


def _interrupted(interrupt: KeyboardInterrupt, world: runtime.World) -> str:
    rank = getattr(interrupt, "rank", None)
    place = getattr(interrupt, "place", "")
    where = f" while rank {rank} ran" if rank is not None else ""
    return (
        f"interrupted{where}{f' at {place}' if place else ''}; the ranks have ended, and the World is as they left it"
    )
