"""``torchemu bandwidth``: times of a collective over sizes, by nccl-tests' flags and in its columns, without data."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from torchemu.bridge.binding import go
from torchemu.c10d.ops import TABLE
from torchemu.errors import CommandError
from torchemu.launch.parsing import LARGEST, positive

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class BandwidthError(CommandError):
    """A sweep that cannot be done, and why."""


def size(text: str) -> int:
    """Reads a number of bytes, such as 8, 4K, 1.5M or 2G.

    Raises:
        argparse.ArgumentTypeError: the text is no such number.
    """
    digits = text.upper().removesuffix("B").removesuffix("I")
    unit = _UNITS.get(digits[-1:], 1)
    try:
        number = int(float(digits[:-1] if unit > 1 else digits) * unit)
    except (ValueError, OverflowError):
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no size, such as 8, 64K or 1G")
    if number > LARGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is more than the largest size, {LARGEST} bytes")
    return number


def add_sizes(parser: argparse.ArgumentParser, factor: int) -> None:
    """Adds the arguments that say which sizes are measured, and of which elements.

    Args:
        factor: that by which sizes grow, where the command does not say so.
    """
    add = parser.add_argument
    add(
        "-b",
        "--minbytes",
        dest="begin",
        type=size,
        default=1 << 10,
        metavar="SIZE",
        help="the first size, such as 8 or 64K (default: 1K)",
    )
    add(
        "-e",
        "--maxbytes",
        dest="end",
        type=size,
        default=16 << 20,
        metavar="SIZE",
        help="the last size, such as 1G (default: 16M)",
    )
    add(
        "-f",
        "--stepfactor",
        dest="factor",
        type=int,
        default=factor,
        metavar="FACTOR",
        help=f"the factor by which sizes grow (default: {factor})",
    )
    add(
        "-d",
        "--datatype",
        dest="dtype",
        default="float",
        help="the type of elements, such as half or bfloat16 (default: float)",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments to its parser."""
    parser.description = (
        "Times a collective over a sweep of sizes, on a fabric that has nothing else to do, with all ranks ready. "
        "Only messages and reductions are simulated: no data, and no programs."
    )
    add = parser.add_argument
    add("collective", choices=list(TABLE.kinds), metavar="COLLECTIVE", help=", ".join(TABLE.kinds))
    add(
        "--topology",
        default="default",
        metavar="NAME|FILE",
        help="a topology.yaml, or a preset, which grows with the ranks (default: default)",
    )
    add(
        "-g",
        "--ngpus",
        "--ranks",
        dest="ranks",
        type=positive,
        default=0,
        help="the number of ranks (default: the SIPs of the topology)",
    )
    add_sizes(parser, factor=2)
    add(
        "-i",
        "--stepbytes",
        dest="step",
        type=size,
        default=0,
        metavar="SIZE",
        help="the bytes by which sizes grow, instead of a factor",
    )
    add(
        "-o",
        "--op",
        default="sum",
        choices=("sum", "prod", "max", "min", "avg"),
        help="the reduction (default: sum); all take the same time",
    )
    add("-r", "--root", type=int, default=0, help="the root, of collectives that have one (default: 0)")
    add(
        "-n",
        "--iters",
        type=positive,
        default=0,
        help="calls back to back, whose mean is shown (default: 20 where the topology has a transport, else 1)",
    )
    add(
        "--algorithm",
        default="auto",
        metavar="NAME",
        help="one that torchemu algorithms lists (default: auto, the fastest)",
    )
    add("--json", action="store_true", help="print JSON: rows with size, time_us, algorithm, algbw and busbw")
    parser.set_defaults(action=bandwidth)


def rows(options: argparse.Namespace) -> Iterator[tuple[int, dict[str, Any]]]:
    """Measures one size after the other; yields the number of ranks and what was measured.

    Raises:
        BandwidthError: the topology or an option is wrong, or there is too much to simulate.
    """
    try:
        handle = go.OpenBandwidth(
            options.collective, options.topology, options.ranks, options.algorithm, options.dtype, options.root,
            options.iters, options.begin, options.end, options.step, options.factor,
        )  # fmt: skip
        try:
            ranks = go.BandwidthRanks(handle)
            while row := go.NextBandwidth(handle):
                yield ranks, json.loads(row)
        finally:
            go.CloseBandwidth(handle)
    except (OSError, ValueError, OverflowError, RuntimeError) as error:
        raise BandwidthError(str(error)) from None


def bandwidth(options: argparse.Namespace) -> int:
    """Measures and prints; returns the exit status.

    Raises:
        BandwidthError: see rows.
    """
    measured = []
    for ranks, row in rows(options):
        if options.json:
            measured.append(row)
            continue
        if not measured:
            _print_header(options, ranks, row["iters"])
        measured.append(row)
        _print_row(options, row)
    if options.json:
        print(json.dumps({"rows": measured}))
        return 0
    print(f"# Avg bus bandwidth    : {sum(r['busbw'] for r in measured) / max(len(measured), 1):g}\n#")
    return 0


def _print_header(options: argparse.Namespace, ranks: int, iters: int) -> None:
    step = f"{options.step}(bytes)" if options.step else f"{options.factor}(factor)"
    print(
        f"# nThread 1 nGpus {ranks} minBytes {options.begin} maxBytes {options.end} step: {step} "
        f"warmup iters: 0 iters: {iters} agg iters: 1 validation: 0 graph: 0\n"
        f"#\n# {options.collective} on {options.topology}, simulated\n#"
    )
    names = "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>9}  {:>7}  {:>7}  {}"
    print(names.format("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "algorithm"))
    print(names.format("(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "").rstrip())


def _print_row(options: argparse.Namespace, row: dict[str, Any]) -> None:
    kind = TABLE.kinds[options.collective]
    print(
        f"{row['size']:12}  {row['count']:12}  {options.dtype:>8}  {options.op if kind.reduces else 'none':>6}  "
        f"{options.root if kind.rooted else -1:6}  {row['time_us']:9.2f}  {row['algbw']:7.2f}  {row['busbw']:7.2f}  "
        f"{row['algorithm']}",
        flush=True,
    )
    if "untried" in row:
        print(f"#   not tried, for they take too long to simulate: {', '.join(row['untried'])}", file=sys.stdout)
