"""The torchemu command's subcommands, and their command line."""

from __future__ import annotations

import argparse
import functools
import importlib
import sys

from torchemu.bridge import interrupts
from torchemu.bridge.binding import go
from torchemu.errors import CommandError
from torchemu.launch.parsing import Later, Parser

_COMMANDS = {
    "bench": ("launch.bench_command:add_arguments", "run a bench: a Python file with run(torch)"),
    "run": ("launch.command:add_arguments", "run a script on ranks, with torchrun's flags"),
    "report": ("report._command:add_arguments", "show what took how long in a run that was traced"),
    "bandwidth": ("launch.bandwidth:add_arguments", "time a collective over sizes, without data"),
    "replay": ("launch.replay:add_arguments", "simulate a recorded job on a fabric"),
    "sweep": ("launch.sweep:add_arguments", "time collectives over topologies, algorithms, ranks"),
    "calibrate": ("launch.calibrate:add_arguments", "fit a topology.yaml to times measured on a machine"),
    "topology": ("launch.topologies:add_arguments", "show a topology, or say what is wrong in its file"),
    "algorithms": ("launch.topologies:add_algorithms", "list the collectives and their algorithms"),
    "schema": (
        "launch.topologies:add_schema",
        "print the JSON Schema of topology.yaml, ccl.yaml or faults.yaml, for editors",
    ),
    "stubs": ("launch.typings:add_arguments", "write stubs, for editors where there is no PyTorch"),
    "completion": ("launch.completion:add_arguments", "print what lets a shell complete these commands"),
}
"""The functions that add a command's arguments, whose modules are loaded where it is used, and what it does."""


def status(argv: list[str] | None) -> int:
    """Runs the command that the arguments, or those of the process, ask for; returns the exit status."""
    options = parser().parse_args(argv)
    try:
        return options.action(options) or 0
    except interrupts.CtrlC as interrupt:
        from torchemu.launch import failures  # the command has loaded it, where it runs programs

        interrupt.place = failures.place(interrupt)
        raise
    except CommandError as error:
        print(f"torchemu: {error}", file=sys.stderr)
        return 1


def parser() -> Parser:
    """Returns the parser of the command line."""
    made = Parser(prog="torchemu", description="A cluster of accelerators in one process.")
    made.add_argument("--version", action="version", version=go.Version())
    commands = made.add_subparsers(required=True, metavar="COMMAND", parser_class=Later)
    for name, (function, does) in _COMMANDS.items():
        commands.add_parser(name, help=does, fill=functools.partial(_fill, function))
    _add_help(made, commands)
    return made


def _fill(function: str, command: Later) -> None:
    module, _, name = function.partition(":")
    getattr(importlib.import_module(f"torchemu.{module}"), name)(command)


def _add_help(parser: Parser, commands: argparse._SubParsersAction[Later]) -> None:
    """Adds the command help, which tells of another one, or of all."""
    told = commands.add_parser("help", help="show this, or the help of a command")
    told.add_argument("command", nargs="?", choices=list(commands.choices), metavar="COMMAND", help="the command")
    told.set_defaults(action=lambda options: commands.choices.get(options.command, parser).print_help())
