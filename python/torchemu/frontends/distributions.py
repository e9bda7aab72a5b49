"""The packages of front ends as importlib.metadata knows installed ones: by name, with a version and nothing else."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from torchemu.frontends.base import FrontEnd


class StandIn(importlib.metadata.Distribution):
    """The distribution of a package that a front end stands for.

    Args:
        package: its top-level name.
        release: its version.
    """

    def __init__(self, package: str, release: str) -> None:
        self._package, self._release = package, release

    def read_text(self, filename: str) -> str | None:
        """Returns what is in a file about it: there are two."""
        about = f"Metadata-Version: 2.1\nName: {self._package}\nVersion: {self._release}\n"
        return {"METADATA": about, "top_level.txt": f"{self._package}\n"}.get(filename)

    def locate_file(self, path: Any) -> Path:
        """Returns where a file of it would lie."""
        return Path(__file__).parent / path


def found(front_ends: Sequence[FrontEnd], name: str | None) -> Iterator[StandIn]:
    """Yields the distributions of a name, or all; those of front ends that have no version are left out."""
    for front_end in front_ends:
        for package in front_end.packages if front_end.version else ():
            if name is None or name.lower() == package:
                yield StandIn(package, front_end.version)
