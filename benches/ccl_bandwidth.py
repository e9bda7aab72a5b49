"""Time and bandwidth of collectives over a sweep of sizes, in the columns and with the options of nccl-tests.

    python benches/ccl_bandwidth.py -b 1K -e 64M -f 4 -g 8 --topology sips8 all_reduce all_gather --plot sweep.png

Without names it runs every collective. Times are simulated; every element of every result is compared with what NumPy
makes of the same inputs. ``torchemu bench benches/ccl_bandwidth.py`` runs it with the defaults.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bandwidth.collectives import COLLECTIVES
from bandwidth.options import Options
from bandwidth.plot import plot
from bandwidth.sweep import Sweep
from bandwidth.table import Table
from bandwidth.values import DTYPES, OPS

from torchemu import runtime


def run(torch: Any, options: Options | None = None) -> int:
    """Runs the bench, for ``torchemu bench``; returns how many elements were wrong."""
    options, world = options or Options(), runtime.current_world()
    ranks = options.threads * options.ranks or world.sips
    if options.root >= ranks:
        raise ValueError(f"root {options.root} is not one of the {ranks} ranks")
    table = Table(options)
    sweep = Sweep(torch, options, ranks, table.row)
    table.header(sweep, [f"AHBM SIP {r} of {world.topology}" for r in range(ranks)])
    torch.multiprocessing.spawn(sweep.rank, nprocs=ranks)
    errors = table.footer()
    if options.plot:
        title = f"{ranks} ranks on {world.topology}, {options.dtype}; simulated"
        plot(table.rows(), options.plot, title)
    return errors


def _bytes(text: str) -> int:
    """A number of bytes, such as 8, 4K, 1.5M or 2G."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    try:
        number, unit = (text[:-1], units[text[-1].upper()]) if text[-1:].upper() in units else (text, 1)
        size = int(float(number) * unit)
    except (ValueError, OverflowError):
        size = 0
    if size < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no size, such as 8, 64K or 1G")
    return size


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return int(text)


def _factor(text: str) -> int:
    if _positive(text) < 2:
        raise argparse.ArgumentTypeError("the factor is at least 2")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    usual = Options()
    parser = argparse.ArgumentParser(description="Time and bandwidth of collectives, as nccl-tests show them.")
    add = parser.add_argument
    add("collectives", nargs="*", metavar="COLLECTIVE", help=f"all without; of {', '.join(COLLECTIVES)}")
    add("-b", "--minbytes", dest="begin", type=_bytes, default=usual.begin, help="the smallest size, such as 64K; 1K")
    add("-e", "--maxbytes", dest="end", type=_bytes, default=usual.end, help="the largest size; 16M")
    add("-f", "--stepfactor", dest="factor", type=_factor, default=usual.factor, help="from size to size; 4")
    add(
        "-i", "--stepbytes", dest="step", type=_bytes, default=usual.step, help="from size to size, instead of a factor"
    )
    add("-d", "--datatype", dest="dtype", choices=tuple(DTYPES), default=usual.dtype, help="of the elements; float")
    add("-o", "--op", choices=OPS, default=usual.op, help="of reductions; sum")
    add("-r", "--root", type=_natural, default=usual.root, help="of the collectives that have one; 0")
    add("-n", "--iters", type=_positive, default=usual.iters, help="calls whose mean is shown; 1, for all are alike")
    add("-w", "--warmup_iters", dest="warmup", type=_natural, default=usual.warmup, help="calls before these; 0")
    add("-c", "--check", type=int, choices=(0, 1), default=1, help="whether results are checked; 1")
    add("-t", "--nthreads", dest="threads", type=_positive, default=usual.threads, help="ranks are t times g; 1")
    add(
        "-g",
        "--ngpus",
        "--ranks",
        dest="ranks",
        type=_natural,
        default=usual.ranks,
        help="without, the SIPs of the topology",
    )
    add(
        "--topology",
        default="default",
        metavar="NAME|FILE",
        help="a preset, of which there are as many SIPs as ranks, or a file",
    )
    add("--ccl", default="", metavar="FILE", help="a ccl.yaml; without it the Tuner chooses algorithms")
    add("--plot", default="", metavar="FILE", help="draw time and bus bandwidth into a PNG; needs matplotlib")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit status: 1 when elements were wrong."""
    import torchemu
    from torchemu.runtime import fabric

    parser = _parser()
    arguments = vars(parser.parse_args(argv))
    topology, ccl = arguments.pop("topology"), arguments.pop("ccl")
    options = Options(
        **{**arguments, "collectives": tuple(arguments["collectives"]), "check": bool(arguments["check"])}
    )
    unknown = [name for name in options.collectives if name not in COLLECTIVES]
    if unknown:
        parser.error(f"there is no collective {unknown[0]!r}: there are {', '.join(COLLECTIVES)}")
    if options.begin > options.end:
        parser.error(f"the smallest size, {options.begin} bytes (-b), is above the largest, {options.end} bytes (-e)")
    if options.plot:
        _check_plot(parser, Path(options.plot))
    try:
        with contextlib.ExitStack() as stack:
            ranks = options.threads * options.ranks
            fitting = stack.enter_context(fabric.fitting(topology, 1, ranks)) if ranks else topology
            stack.enter_context(torchemu.open_world(fitting, ccl))
            return 1 if run(torchemu, options) else 0
    except (OSError, ValueError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")


def _check_plot(parser: argparse.ArgumentParser, file: Path) -> None:
    """Finds what would be wrong with a plot before the time is spent on what is in it."""
    if not file.absolute().parent.is_dir():
        parser.error(f"argument --plot: there is no folder {file.parent}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        parser.error("argument --plot needs matplotlib: pip install 'torchemu[plot]'")


if __name__ == "__main__":
    from torchemu.launch.cli import command

    sys.exit(command(main))
