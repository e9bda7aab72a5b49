"""A topology that has room for as many ranks as a run is to have."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go

_SEVERAL_NODES = "nodes2x8"  # the preset whose network joins the nodes where a topology has none


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
    """A topology with a SIP for each rank: the one that is named or, if that is a preset, the same of another size.

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
        file.write_text(json.dumps(resized(_spec(topology), nnodes, nproc)))  # JSON is YAML
        try:
            yield os.fspath(file)
        except Exception as error:
            if os.fspath(file) not in str(error):
                raise
            about = str(error).replace(f"{file}:1: ", "")  # a file that the user has never seen
            ranks = f"{_count(nnodes, 'node')} of {_count(nproc, 'rank')}"
            raise type(error)(f"topology {topology!r} does not fit {ranks}: {about}") from error


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


def resized(spec: dict[str, Any], nodes: int, sips: int) -> dict[str, Any]:
    """A topology's tree with so many nodes of so many SIPs each."""
    spec = copy.deepcopy(spec)
    spec["name"] = f"{spec['name']}, resized to {_count(nodes, 'node')} of {_count(sips, 'SIP')}"
    system = spec["system"]
    system["nodes"]["count"] = nodes
    system["sips"]["count"] = nodes * sips
    if system["sips"]["connect"] == "torus2d":
        system["sips"]["h"] = next(h for h in range(math.isqrt(sips), 0, -1) if sips % h == 0)
        system["sips"]["w"] = sips // system["sips"]["h"]
    if nodes > 1 and "network" not in system:
        system["network"] = _spec(_SEVERAL_NODES)["system"]["network"]
    return spec


def _spec(topology: str) -> dict[str, Any]:
    world = runtime.World(topology)
    world.close()
    return world.spec


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
