"""The torchemu command."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable

from torchemu import _interrupts, bench
from torchemu._binding import go
from torchemu.multiprocessing import ProcessException
from torchemu.report import _command as report
from torchemu.report._load import ReportError
from torchemu.run import command as run
from torchemu.run import flags


def main(argv: list[str] | None = None) -> int:
    """Runs the command and returns its exit status."""
    return command(lambda: _status(argv))


def command(action: Callable[[], int]) -> int:
    """Runs a command that prints, and returns its exit status: 130 after Ctrl-C, and 141, without a word, when nobody
    reads its output any more.

    Args:
        action: does the work and returns the status of its own.
    """
    stdout = sys.stdout
    try:
        with _interrupts.ends_the_process(), contextlib.redirect_stdout(_interrupts.Output(stdout)):
            status = action()
            sys.stdout.flush()
            return status
    except _interrupts.Unread:
        _interrupts.stop_writing(stdout)
        return _interrupts.UNREAD_STATUS
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return _interrupts.EXIT_STATUS


def _status(argv: list[str] | None) -> int:
    options = _parser().parse_args(argv)
    try:
        return options.action(options) or 0
    except ProcessException as error:
        print(f"torchemu: {error.msg.strip()}", file=sys.stderr)
        return 1
    except (bench.BenchError, run.RunError, ReportError) as error:
        print(f"torchemu: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="torchemu", description="A cluster of accelerators in one process.")
    parser.add_argument("--version", action="version", version=go.Version())
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_bench(commands.add_parser("bench", help="run a bench: a Python file with run(torch)"))
    _add_run(commands.add_parser("run", help="run a script on ranks, with torchrun's flags"))
    _add_report(commands.add_parser("report", help="show what took how long in a run that was traced"))
    return parser


def _add_run(parser: argparse.ArgumentParser) -> None:
    flags.add_arguments(parser)
    parser.set_defaults(action=run.run)


def _add_report(parser: argparse.ArgumentParser) -> None:
    report.add_arguments(parser)
    parser.set_defaults(action=report.report)


def _add_bench(parser: argparse.ArgumentParser) -> None:
    presets = ", ".join(json.loads(go.Presets()))
    parser.add_argument("file", metavar="FILE", help="the bench")
    parser.add_argument(
        "--topology", default="default", metavar="NAME|FILE", help=f"a topology.yaml, or one of {presets}"
    )
    parser.add_argument(
        "--ccl",
        action="append",
        metavar="FILE",
        help="a ccl.yaml; without it the Tuner chooses algorithms; with several, a run with each, in one table",
    )
    flags.add_strictness(parser)
    flags.add_trace(parser)
    parser.set_defaults(action=_bench)


def _bench(options: argparse.Namespace) -> None:
    trace = bench.Trace(options.trace, options.trace_level, options.trace_range == "profiler")
    bench.run(options.file, options.topology, options.ccl or [""], trace, flags.strictness(options))
