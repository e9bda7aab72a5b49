"""The lines of compiled code, by its addresses."""

from __future__ import annotations

import bisect
import functools
import re
import shutil
import subprocess
from pathlib import Path

from torchemu.frontends.pto._compiler import HEADERS

_OWN = frozenset(file.name for file in HEADERS.rglob("*.h*"))
"""The names of torchemu's headers."""

_ROW = re.compile(r"^(\S+)\s+(\d+)\s+(0x[0-9a-f]+|0)\b")


class Lines:
    """The source lines of a library, from what the compiler has noted in it.

    Args:
        file: the library.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def at(self, place: int) -> str:
        """The file's base name and the line of the call that returns to a place in the library."""
        places, names = self._table
        i = bisect.bisect_right(places, place - 1) - 1
        if i < 0:
            return "an unknown line"
        return self._outside(place - 1) or names[i] if names[i].partition(":")[0] in _OWN else names[i]

    def _outside(self, place: int) -> str | None:
        """The line that a line of torchemu's headers has been inlined into."""
        reader = shutil.which("addr2line")
        if reader is None:
            return None
        command = [reader, "-i", "-e", str(self._file), hex(place)]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        for frame in said.stdout.splitlines():
            file, _, line = frame.split(" ")[0].rpartition(":")
            if file and Path(file).name not in _OWN and line.isdigit():
                return f"{Path(file).name}:{line}"
        return None

    @functools.cached_property
    def _table(self) -> tuple[list[int], list[str]]:
        reader = shutil.which("readelf")
        if reader is None:
            return [], []
        said = subprocess.run(
            [reader, "--debug-dump=decodedline", "-W", str(self._file)], capture_output=True, text=True, check=False
        ).stdout
        rows = [(int(m[3], 16), f"{Path(m[1]).name}:{m[2]}") for m in map(_ROW.match, said.splitlines()) if m]
        rows.sort(key=lambda row: row[0])  # of one place the last is meant
        return [place for place, _ in rows], [name for _, name in rows]
