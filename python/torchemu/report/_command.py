"""The command torchemu report."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from torchemu.report._analysis import collectives, links, operations, shares
from torchemu.report._load import ReportError, load
from torchemu.report._page import page
from torchemu.report._text import Terminal

_SHOWN = 10  # collectives and links on the terminal
PAGE = "report.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="what torchemu run --trace DIR has written")
    parser.add_argument("--html", metavar="FILE", type=Path, help=f"where the page goes; without, {PAGE} in DIR")
    parser.add_argument(
        "--top", metavar="N", type=_count, default=20, help="how many slow collectives the page has, 20"
    )


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
    try:
        _report(options)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        what = f"{type(error).__name__}: {error}"
        raise ReportError(
            f"the traces in {options.folder} are not what torchemu run --trace writes: {what!r}"
        ) from None


def _report(options: argparse.Namespace) -> None:
    run = load(options.folder)
    found, spent, used = collectives(run), shares(run), links(run)
    slowest = sorted(found, key=lambda c: (-c.time, c.end, c.group, c.number))
    sums = operations(found)
    print(_terminal().text(run, spent, sums, slowest[:_SHOWN], used[:_SHOWN]))
    file = options.html or options.folder / PAGE
    try:
        file.write_text(page(run, spent, found, sums, slowest[: options.top], used))
    except OSError as error:
        raise ReportError(f"the page cannot be written to {file}: {error.strerror}") from error
    print(f"\npage written to {file}")
