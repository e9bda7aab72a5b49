"""Worlds for the tests of kernels: any number of ranks, checked."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import torchemu as torch
from torchemu import World, runtime


@contextlib.contextmanager
def world_of(ranks: int, ccl: str = "", check: bool = True, reorder: int | None = None) -> Iterator[World]:
    """A World of so many SIPs."""
    with tempfile.TemporaryDirectory() as folder:
        topology, config = Path(folder, "t.yaml"), Path(folder, "ccl.yaml")
        topology.write_text(f"name: test\nsystem: {{sips: {{count: {ranks}}}}}\n")
        config.write_text(ccl or "defaults: {}\n")
        with runtime.opened(str(topology), str(config), runtime.Strictness(check, reorder)) as world:
            yield world


def run(ranks: int, program: Callable[[int], None], check: bool = True, reorder: int | None = None) -> World:
    """Spawns ranks in a World of their own, which is closed after."""
    with world_of(ranks, check=check, reorder=reorder) as world:
        torch.multiprocessing.spawn(program, nprocs=ranks)
    return world
