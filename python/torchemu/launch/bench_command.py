"""``torchemu bench``: the command that runs a bench."""

from __future__ import annotations

import argparse
import json
import sys

from torchemu.bridge.binding import go
from torchemu.launch import bench, failures, flags
from torchemu.multiprocessing import ProcessException


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments to its parser."""
    parser.usage = "torchemu bench [OPTION…] FILE"
    presets = ", ".join(json.loads(go.Presets()))
    parser.add_argument("file", metavar="FILE", help="the bench, or one of torchemu's by its name: ccl_allreduce")
    parser.add_argument(
        "--topology", default="default", metavar="NAME|FILE", help=f"a topology.yaml, or one of {presets}"
    )
    parser.add_argument(
        "--ccl",
        action="append",
        metavar="FILE",
        help="a ccl.yaml; without it the Tuner chooses algorithms; with several, a run with each, in one table",
    )
    flags.add_torch(parser, "without it torchemu's own")
    flags.add_strictness(parser)
    flags.add_trace(parser)
    parser.set_defaults(action=_bench)


def _bench(options: argparse.Namespace) -> int:
    try:
        flags.check_trace(options)
    except ValueError as error:
        raise bench.BenchError(str(error)) from None
    trace = bench.Trace(options.trace, options.trace_level, options.trace_range == "profiler")
    try:
        bench.run(options.file, options.topology, options.ccl or [""], trace, flags.strictness(options), options.torch)
    except bench.BenchError:
        raise
    except ProcessException as error:
        raise bench.BenchError(error.msg.strip()) from None
    except Exception as error:
        sys.stdout.flush()
        print(failures.shown(error), end="", file=sys.stderr)
        return 1
    return 0
