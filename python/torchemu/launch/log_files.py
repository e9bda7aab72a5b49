"""Files of what ranks print: torchrun's --log-dir, --redirects and --tee."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

STREAMS = ("stdout", "stderr")

Streams = Callable[[int], int]
"""Gives the streams of a local rank as torchrun's number: 1 for stdout, 2 for stderr, 3 for both, 0 for none."""


def streams(text: str) -> Streams:
    """Reads "3", for all ranks, or "0:1,3:2", for some local ranks.

    Raises:
        ValueError: it is neither.
    """
    try:
        if ":" not in text:
            every = _number(text)
            return lambda _: every
        pairs = (part.split(":") for part in text.split(","))
        chosen = {int(rank): _number(number) for rank, number in pairs}
    except ValueError:
        about = "neither a number, 0 to 3, nor a list of them by local rank, such as 0:3,1:2"
        raise ValueError(f"{text!r} is {about}") from None
    return lambda rank: chosen.get(rank, 0)


def _number(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 3:
        raise ValueError(text)
    return number


@dataclass
class LogFiles:
    """The files of a run: FOLDER/attempt_N/RANK/stdout.log and stderr.log.

    Args:
        folder: where they go; None for a new one among the temporary files.
        redirects: which streams go to files only, but for those of tee.
        tee: which go to files, too.
        nproc: ranks of a node.

    Raises:
        OSError: the folder cannot be made.
    """

    folder: Path | None
    redirects: Streams
    tee: Streams
    nproc: int
    attempt: int = 0
    _open: dict[Path, TextIO] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="torchemu_"))
            print(f"torchemu: what ranks print goes to {self.folder}", file=sys.stderr)
        self.folder.mkdir(parents=True, exist_ok=True)

    def stream(self, rank: int, name: str, shown: Any) -> Any:
        """Returns where a rank's stream goes, given where it would go without files."""
        wanted, local = 1 << STREAMS.index(name), rank % self.nproc
        if self.tee(local) & wanted:
            return _Tee(self._opened(rank, name), shown)
        return self._opened(rank, name) if self.redirects(local) & wanted else shown

    def note(self, rank: int, text: str) -> None:
        """Adds a text to the end of a rank's stderr, where that has a file: why it failed."""
        if (self.redirects(rank % self.nproc) | self.tee(rank % self.nproc)) & 2:
            self._opened(rank, "stderr").write(text)

    def close(self) -> None:
        """Closes the files. The next ones are another attempt's."""
        for file in self._open.values():
            file.close()
        self._open.clear()
        self.attempt += 1

    def _path(self, rank: int, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"attempt_{self.attempt}" / str(rank) / f"{name}.log"

    def _opened(self, rank: int, name: str) -> TextIO:
        path = self._path(rank, name)
        if path not in self._open:  # processes that ranks start write behind what those have written
            path.parent.mkdir(parents=True, exist_ok=True)
            self._open[path] = path.open("w", encoding="utf-8")
        return self._open[path]


class _Tee:
    """A stream that writes to a file, and to another stream, whose all else it is."""

    def __init__(self, file: TextIO, shown: Any) -> None:
        self._file, self._shown = file, shown

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shown, name)

    def write(self, text: str) -> int:
        """Writes to both."""
        self._file.write(text)
        return int(self._shown.write(text))

    def flush(self) -> None:
        """Flushes both."""
        self._file.flush()
        self._shown.flush()
