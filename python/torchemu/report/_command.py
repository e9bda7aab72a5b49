"""The command torchemu report."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torchemu.report import _compare
from torchemu.report._load import ReportError, load
from torchemu.report._page import page
from torchemu.report._sums import sums
from torchemu.report._text import Terminal

_SHOWN = 10  # collectives, kernels, links and parts of the critical path on the terminal
PAGE = "report.html"
COMPARISON = "comparison.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="a folder that torchemu run --trace DIR has written")
    parser.add_argument("other", metavar="DIR2", type=Path, nargs="?", help="another one, to compare the first with")
    parser.add_argument(
        "--html",
        metavar="FILE",
        type=Path,
        help=f"where the page goes (default: {PAGE} in DIR, or {COMPARISON} in DIR2)",
    )
    parser.add_argument(
        "--top", metavar="N", type=_count, default=20, help="how many slow collectives the page has (default: 20)"
    )
    parser.set_defaults(action=report)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of collectives")
    return int(text)


def _terminal() -> Terminal:
    """Lines fit a terminal; elsewhere they are as long as they have to be."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    return Terminal(width, os.path.join(os.getcwd(), ""))


def report(options: argparse.Namespace) -> None:
    """Prints the tables, and writes the page.

    Raises:
        ReportError: the folder has no traces, or broken ones, or the page cannot be written.
    """
    if options.other is None:
        _report(options)
    else:
        _comparison(options)


@contextmanager
def _understood(folder: Path) -> Iterator[None]:
    """Tells of traces that have what no run writes in a line."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        what = f"{type(error).__name__}: {error}"
        raise ReportError(f"the traces in {folder} are not what torchemu run --trace writes: {what!r}") from None


def _report(options: argparse.Namespace) -> None:
    with _understood(options.folder):
        run = load(options.folder)
        found = sums(run)
        html = page(run, found, options.top)
        text = _terminal().text(
            run, found.shares, found.operations, found.slowest[:_SHOWN], found.links[:_SHOWN], found.kernels[:_SHOWN],
            found.path_parts[:_SHOWN],
        )  # fmt: skip
    _publish(html, text, options.html or options.folder / PAGE)


def _comparison(options: argparse.Namespace) -> None:
    runs = []
    for folder in (options.folder, options.other):
        with _understood(folder):
            run = load(folder)
            runs.append((run, sums(run)))
    parts = _compare.compared(runs)
    _publish(_compare.page(runs, parts), _compare.text(runs, parts), options.html or options.other / COMPARISON)


def _publish(html: str, text: str, file: Path) -> None:
    """Writes the page, then prints: who reads that may stop before the end."""
    try:
        file.write_text(html, encoding="utf-8")
    except OSError as error:
        raise ReportError(f"the page cannot be written to {file}: {error.strerror}") from error
    print(f"{text}\n\npage written to {file}")
