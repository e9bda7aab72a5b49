"""Command-line flags that the benches of tensor parallelism have in common."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


def positive(text: str) -> int:
    """A number from 1 on."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def add_degrees(parser: argparse.ArgumentParser, usual: Sequence[int], what_for: str) -> None:
    """How many ways the model is divided."""
    shown = " ".join(map(str, usual))
    text = f"numbers of ranks to {what_for} (default: {shown})"
    parser.add_argument("--tp", type=positive, nargs="+", default=usual, metavar="N", help=text)


def fitting(degrees: Sequence[int], sips: int) -> list[int]:
    """Returns the degrees that the topology has SIPs for, and prints which it leaves out."""
    too_large = [degree for degree in degrees if degree > sips]
    if too_large:
        print(f"(without tp {', '.join(map(str, too_large))}: the topology has {sips} SIPs)")
    return [degree for degree in degrees if degree <= sips]


def add_fabric(parser: argparse.ArgumentParser) -> None:
    """Adds the flag that names the fabric of the ranks."""
    text = "a preset, which grows with the ranks, or a file (default: default)"
    parser.add_argument("--topology", default="default", metavar="NAME|FILE", help=text)
    text = "a ccl.yaml; without it the Tuner chooses algorithms"
    parser.add_argument("--ccl", default="", metavar="FILE", help=text)
