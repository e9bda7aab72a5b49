"""``torchemu replay``: how long a recorded job takes on a fabric."""

from __future__ import annotations

import argparse
import json

from torchemu.bridge.binding import go
from torchemu.errors import CommandError


class ReplayError(CommandError):
    """A trace that cannot be replayed, and why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments to its parser."""
    parser.description = (
        "Simulates a recorded job on a fabric: Chakra execution traces (NAME.et for NAME.0.et, NAME.1.et, …, as "
        "torchemu run --trace NAME.et writes them), or GOAL, the text of LogGOPSim's schedules."
    )
    parser.add_argument("trace", metavar="TRACE", help="the file, or NAME.et for those of all ranks")
    parser.add_argument(
        "--topology",
        default="default",
        metavar="NAME|FILE",
        help="a topology.yaml, or a preset, which grows with the ranks (default: default)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON: ranks, operations, time_us, ends_us")
    parser.set_defaults(action=replay)


def replay(options: argparse.Namespace) -> int:
    """Replays and prints; returns the exit status.

    Raises:
        ReplayError: the trace or the topology is wrong, with the place, or operations wait for each other for ever.
    """
    try:
        text = go.Replay(options.trace, options.topology)
    except (OSError, ValueError, RuntimeError) as error:
        raise ReplayError(str(error)) from None
    if options.json:
        print(text)
        return 0
    result = json.loads(text)
    ends = result["ends_us"]
    told = ", ".join(_counted(result[name], name) for name in ("ranks", "operations"))
    print(f"{options.trace} on {options.topology}: {told}")
    print(f"{result['time_us']:.6f} us until the last rank ends; the first ends at {min(ends):.6f} us")
    return 0


def _counted(n: int, what: str) -> str:
    """Returns a number with what it counts, whose name is a plural."""
    return f"{n} {what if n != 1 else what.removesuffix('s')}"
