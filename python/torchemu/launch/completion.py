"""``torchemu completion``: a script by which a shell completes the command's lines."""

from __future__ import annotations

import argparse
import importlib
import json
from collections.abc import Iterator
from typing import Any

from torchemu.bridge.binding import go
from torchemu.errors import CommandError

SHELLS = ("bash", "zsh", "fish")
"""Shells that shtab writes scripts for, of those on systems that torchemu runs on."""

_FOLDERS = ("DIR", "DIR2", "FOLDER")
_FILES = ("FILE", "SCRIPT", "PATH")
_OR_PRESETS = "NAME|FILE"


class CompletionError(CommandError):
    """A script that cannot be written, and why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments to its parser."""
    parser.description = (
        "Prints the script by which a shell completes torchemu's commands, flags, presets and files: eval \"$(torchemu "
        'completion bash)" in ~/.bashrc, the same with zsh in ~/.zshrc after compinit, or torchemu completion fish > '
        "~/.config/fish/completions/torchemu.fish"
    )
    parser.add_argument("shell", choices=SHELLS, help="which shell")
    parser.set_defaults(action=_print)


def _print(options: argparse.Namespace) -> None:
    from torchemu.launch import commands  # whose parser has this command's

    print(script(commands.parser(), options.shell))


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Returns the script of a shell.

    Raises:
        CompletionError: shtab is not installed.
    """
    try:
        shtab = importlib.import_module("shtab")
    except ImportError:
        raise CompletionError("shtab is not installed, which writes these scripts: pip install shtab") from None
    presets = " ".join(json.loads(go.Presets()))
    either = {
        "bash": "_torchemu_topologies",
        "zsh": "_torchemu_topologies",
        "fish": f"(string split ' ' '{presets}'; __fish_complete_path (commandline -ct))",
    }
    for action in _actions(parser):
        names = str(action.metavar or "")
        if names == _OR_PRESETS:
            vars(action)["complete"] = either
        elif names in _FOLDERS or names in _FILES:
            vars(action)["complete"] = shtab.DIRECTORY if names in _FOLDERS else shtab.FILE
    preamble = {
        "bash": f'_torchemu_topologies() {{\n  compgen -W "{presets}" -- "$1"; compgen -f -- "$1"\n}}',
        "zsh": f"_torchemu_topologies() {{\n  _alternative 'presets:preset:({presets})' 'files:file:_files'\n}}",
    }
    return str(shtab.complete(parser, shell, preamble=preamble))


def _actions(parser: argparse.ArgumentParser) -> Iterator[Any]:
    """Goes through the arguments of a parser, and of its commands', which it fills."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                command.fill()
                yield from _actions(command)
        else:
            yield action
