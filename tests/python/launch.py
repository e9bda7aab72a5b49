"""Running programs with torchemu run, inside the tests' process."""

from __future__ import annotations

import contextlib
import io
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

from torchemu.launch import cli

TIME = re.compile(r"\b\d+(\.\d+)? ?(ps|ns|us|ms|s)\b")
"""A time as reports print it."""

_MARKS = re.compile(r"^(\[rank\d+\]:)? +[~^]+\n", re.MULTILINE)


def unmarked(text: str) -> str:
    """Returns what is printed without the lines that mark a part of the line before: each Python has its own."""
    return _MARKS.sub("", text)


@dataclass(frozen=True)
class Outcome:
    """The output of a run, and its exit status."""

    status: int
    out: str
    err: str


def launch(*arguments: str | Path) -> Outcome:
    """torchemu run with these arguments."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(["run", *map(str, arguments)])
    return Outcome(status, out.getvalue(), err.getvalue())


def written(folder: Path, text: str, name: str = "program.py") -> Path:
    """A file with the text, which may be indented."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text))
    return file


def lines(outcome: Outcome) -> list[str]:
    """Returns what a run that succeeded printed, in an order that no schedule changes."""
    assert (outcome.status, outcome.err) == (0, "")
    return sorted(outcome.out.splitlines())
