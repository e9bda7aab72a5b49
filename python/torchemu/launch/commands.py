"""The torchemu command's subcommands, and their command line."""

from __future__ import annotations

import argparse
import json
import sys

import torchemu.launch.bench as bench
from torchemu.bridge import interrupts
from torchemu.bridge.binding import go
from torchemu.launch import bandwidth, calibrate, completion, failures, flags, replay, sweep, topologies, typings
from torchemu.launch import command as run
from torchemu.launch.parsing import Parser
from torchemu.multiprocessing import ProcessException
from torchemu.report import _command as report
from torchemu.report._load import ReportError

_OWN_ERRORS = (
    bench.BenchError,
    run.RunError,
    ReportError,
    calibrate.CalibrateError,
    topologies.TopologyError,
    bandwidth.BandwidthError,
    replay.ReplayError,
    sweep.SweepError,
    completion.CompletionError,
    typings.StubsError,
)
"""Exceptions that say all that there is to say."""


def status(argv: list[str] | None) -> int:
    """Runs the command that the arguments, or those of the process, ask for; returns the exit status."""
    options = _parser().parse_args(argv)
    try:
        return options.action(options) or 0
    except interrupts.CtrlC as interrupt:
        interrupt.place = failures.place(interrupt)
        raise
    except ProcessException as error:
        print(f"torchemu: {error.msg.strip()}", file=sys.stderr)
        return 1
    except _OWN_ERRORS as error:
        print(f"torchemu: {error}", file=sys.stderr)
        return 1


def _parser() -> Parser:
    parser = Parser(prog="torchemu", description="A cluster of accelerators in one process.")
    parser.add_argument("--version", action="version", version=go.Version())
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_bench(commands.add_parser("bench", help="run a bench: a Python file with run(torch)"))
    _add_run(commands.add_parser("run", help="run a script on ranks, with torchrun's flags"))
    _add_report(commands.add_parser("report", help="show what took how long in a run that was traced"))
    bandwidth.add_arguments(commands.add_parser("bandwidth", help="time a collective over sizes, without data"))
    replay.add_arguments(commands.add_parser("replay", help="simulate a recorded job on a fabric"))
    sweep.add_arguments(commands.add_parser("sweep", help="time collectives over topologies, algorithms, ranks"))
    calibrate.add_arguments(commands.add_parser("calibrate", help="fit a topology.yaml to times measured on a machine"))
    topologies.add_arguments(commands.add_parser("topology", help="show a topology, or say what is wrong in its file"))
    topologies.add_algorithms(commands.add_parser("algorithms", help="list the collectives and their algorithms"))
    schema = "print the JSON Schema of topology.yaml, ccl.yaml or faults.yaml, for editors"
    topologies.add_schema(commands.add_parser("schema", help=schema))
    typings.add_arguments(commands.add_parser("stubs", help="write stubs, for editors where there is no PyTorch"))
    completes = "print what lets a shell complete these commands"
    completion.add_arguments(commands.add_parser("completion", help=completes), lambda: parser)
    _add_help(parser, commands)
    return parser


def _add_help(parser: Parser, commands: argparse._SubParsersAction[Parser]) -> None:
    """Adds the command help, which tells of another one, or of all."""
    told = commands.add_parser("help", help="show this, or the help of a command")
    told.add_argument("command", nargs="?", choices=list(commands.choices), metavar="COMMAND", help="the command")
    told.set_defaults(action=lambda options: commands.choices.get(options.command, parser).print_help())


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.usage = "torchemu run [OPTION…] SCRIPT [ARGUMENT…]"
    flags.add_arguments(parser)
    parser.set_defaults(action=run.run)


def _add_report(parser: argparse.ArgumentParser) -> None:
    report.add_arguments(parser)
    parser.set_defaults(action=report.report)


def _add_bench(parser: argparse.ArgumentParser) -> None:
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
    except (bench.BenchError, ProcessException):
        raise
    except Exception as error:
        sys.stdout.flush()
        print(failures.shown(error), end="", file=sys.stderr)
        return 1
    return 0
