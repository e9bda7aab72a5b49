"""A topology that has room for as many ranks as a run is to have."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go


class MisfitError(ValueError):
    """A topology file has not the SIPs that the ranks need."""


def shape(topology: str) -> tuple[int, int]:
    """The nodes of a topology, and the SIPs of each."""
    system = _spec(topology)["system"]
    nodes = system["nodes"]["count"]
    return nodes, system["sips"]["count"] // nodes


def is_preset(topology: str) -> bool:
    """Reports whether it is the name of a built-in topology, which may have any size."""
    return topology in json.loads(go.Presets())


@contextlib.contextmanager
def fitting(topology: str, nnodes: int, nproc: int) -> Iterator[str]:
    """A topology with a SIP for each rank: the one that is named if it has as many or more, or, if it is a preset, the
    same of another size.

    Rank r is on SIP r. So ranks of several nodes are on the SIPs of as many nodes only where each has as many.

    Raises:
        MisfitError: a file's topology does not fit.
    """
    nodes, sips = shape(topology)
    if nnodes * nproc <= nodes * sips and (nnodes == 1 or nproc == sips):
        yield topology
        return
    if not is_preset(topology):
        raise MisfitError(
            f"{topology} has {_count(nodes, 'node')} of {_count(sips, 'SIP')}, which does not fit "
            f"{_count(nnodes, 'node')} of {_count(nproc, 'rank')}: each rank needs a SIP, in the node of its number"
        )
    with tempfile.TemporaryDirectory(prefix="torchemu-") as folder:
        file = Path(folder, f"{topology}.yaml")
        file.write_text(go.ResizedTopology(topology, nnodes, nproc), encoding="utf-8")
        yield os.fspath(file)


def enlarge(world: runtime.World, topology: str, nproc: int) -> None:
    """Gives a World of a preset more SIPs: its program spawns more ranks than that has.

    Raises:
        MisfitError: it cannot be done now.
    """
    with fitting(topology, 1, nproc) as larger:
        try:
            world.resize(larger)
        except RuntimeError as error:
            raise MisfitError(
                f"{nproc} processes do not fit topology {world.topology!r}: it has {_count(world.sips, 'SIP')}, and "
                f"cannot get more, for {error}; choose a --topology with at least {nproc}"
            ) from error


def _spec(topology: str) -> dict[str, Any]:
    world = runtime.World(topology)
    world.close()
    return world.spec


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
