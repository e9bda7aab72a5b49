"""The lines of compiled code, by its addresses."""

from __future__ import annotations

import bisect
import functools
import re
import shutil
import subprocess
from pathlib import Path

_ROW = re.compile(r"^(\S+)\s+(\d+)\s+(0x[0-9a-f]+|0)\b")


class Lines:
    """Those of a library, from what the compiler has noted in it.

    Args:
        file: the library.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def at(self, place: int) -> str:
        """The file's base name and the line of the call that returns to a place in the library."""
        places, names = self._table
        i = bisect.bisect_right(places, place - 1) - 1
        return names[i] if i >= 0 else "an unknown line"

    @functools.cached_property
    def _table(self) -> tuple[list[int], list[str]]:
        reader = shutil.which("readelf")
        if reader is None:
            return [], []
        said = subprocess.run(
            [reader, "--debug-dump=decodedline", "-W", str(self._file)], capture_output=True, text=True, check=False
        ).stdout
        rows = sorted((int(m[3], 16), f"{Path(m[1]).name}:{m[2]}") for m in map(_ROW.match, said.splitlines()) if m)
        return [place for place, _ in rows], [name for _, name in rows]
