"""``torchemu topology`` and ``torchemu algorithms``: what there is to run on, and to run."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from torchemu.bridge.binding import go
from torchemu.c10d.ops import TABLE
from torchemu.errors import CommandError

KINDS = ("topology", "ccl", "faults")
"""The kinds of files that have a JSON Schema."""


class TopologyError(CommandError):
    """A topology that is wrong, or a picture that cannot be written."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``torchemu topology`` to its parser."""
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    show = verbs.add_parser("show", help="draw a topology, and list its links with their rates")
    presets = ", ".join(json.loads(go.Presets()))
    show.add_argument("topology", metavar="NAME|FILE", help=f"a topology.yaml, or one of {presets}")
    show.add_argument("--svg", metavar="FILE", help="write the picture to a file, as SVG")
    show.set_defaults(action=_show)
    validate = verbs.add_parser("validate", help="say what is wrong in a topology.yaml")
    validate.add_argument("topology", metavar="NAME|FILE", help="the file")
    validate.set_defaults(action=_validate)


def add_schema(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``torchemu schema`` to its parser."""
    parser.add_argument("kind", choices=KINDS, help="the kind of file")
    parser.set_defaults(action=_schema)


def add_algorithms(parser: argparse.ArgumentParser) -> None:
    """Adds what ``torchemu algorithms`` does to its parser."""
    parser.set_defaults(action=_algorithms)


def algorithms(topology: str = "", ranks: int = 0) -> dict[str, list[str]]:
    """Returns the names of each collective's algorithms: of those that can run on a topology, where one is named."""
    names = go.AlgorithmsOn(topology, ranks) if topology else go.CollectiveAlgorithms()
    return dict(zip(TABLE.kinds, json.loads(names), strict=True))


def _picture(topology: str, svg: bool) -> str:
    try:
        return go.ShowTopology(topology, svg)
    except (OSError, ValueError, RuntimeError) as error:
        raise TopologyError(str(error)) from None


def _show(options: argparse.Namespace) -> int:
    if options.svg is None:
        print(_picture(options.topology, False), end="")
        return 0
    picture = _picture(options.topology, True)
    try:
        Path(options.svg).write_text(picture, encoding="utf-8")
    except OSError as error:
        raise TopologyError(f"{options.svg}: {os.strerror(error.errno or 0)}") from None
    return 0


def _validate(options: argparse.Namespace) -> int:
    _picture(options.topology, False)
    print(f"{options.topology}: nothing is wrong")
    return 0


def _schema(options: argparse.Namespace) -> int:
    print(go.FileSchema(options.kind))
    return 0


def _algorithms(_: argparse.Namespace) -> int:
    table = algorithms()
    width = max(map(len, table))
    for kind, names in table.items():
        print(f"{kind:{width}}  {', '.join(names)}")
    return 0
