"""Programs that ranks start as processes.

In the place of torchrun torchemu runs, in a process, World and time of its own; shells find it by that name. Programs
that are told their ranks are ranks of the World where the one that starts them is its only one; else they are processes
of the system, and a line says so.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torchemu import runtime
from torchemu.launch import rank_programs
from torchemu.launch.patches import current, replace
from torchemu.runtime import program

_MODULE = "torch.distributed.run"
_OF_SHELLS = frozenset(";&|<>$`\n(){}*?~")
"""Characters of commands that only a shell understands."""

_SHELLS = frozenset({"sh", "ash", "bash", "dash", "ksh", "zsh"})

_OUTSIDE = (
    " a rank outside of the simulation, with gloo and without devices: torchrun, torch.multiprocessing and "
    "`torchemu run --nproc-per-node` start ranks inside"
)
_NUMBERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
"""Variables that are handed down to what is no rank, as they are."""

_RANK = re.compile(r"--(local|global)?[-_]?rank(=|$)")


class _Told:
    """Lines on standard error, each of which is written once."""

    def __init__(self) -> None:
        self._lines: set[str] = set()

    def add(self, line: str) -> None:
        """Writes a line."""
        if line not in self._lines:
            self._lines.add(line)
            print(line, file=sys.stderr, flush=True)


class _Folder:
    """A folder in which torchemu has torchrun's name, made when a rank first starts a shell.

    Args:
        stack: it is there until this one is closed.
        options: those of ``torchemu run`` that are this run's.
    """

    def __init__(self, stack: contextlib.ExitStack, options: Sequence[str]) -> None:
        self._stack, self._options = stack, options
        self._made = ""

    def put_first(self, environment: Mapping[Any, Any]) -> dict[Any, Any]:
        """Returns an environment in which the name is looked for there first."""
        if not self._made:
            self._made = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="torchemu-"))
            command = Path(self._made, "torchrun")
            line = shlex.join(_command([], self._options))
            command.write_text(f'#!/bin/sh\nexec {line} "$@"\n', encoding="utf-8")
            command.chmod(0o755)
        return {**environment, "PATH": os.pathsep.join([self._made, environment.get("PATH", os.defpath)])}


def install(stack: contextlib.ExitStack, options: Sequence[str]) -> None:
    """Lets ranks start torchemu where they start torchrun, until the stack is closed.

    Args:
        options: those of ``torchemu run`` that are this run's.
    """
    real, told, folder = subprocess.Popen.__init__, _Told(), _Folder(stack, options)

    @functools.wraps(real)
    def popen(self: Any, args: Any, *rest: Any, **kwargs: Any) -> None:
        if current() is not None and not rest and kwargs.get("executable") is None:
            given, args = args, _instead(args, options, bool(kwargs.get("shell")))
            if args is given and _is_of_rank(args, kwargs.get("env") or {}):
                if type(self) is subprocess.Popen and rank_programs.can_be_rank(kwargs):
                    rank_programs.RankProgram.begin(self, args, kwargs)
                    return
                told.add(f"torchemu: the process that {_caller()} starts is{_OUTSIDE}")
            elif args is given and _is_of_shell(args, bool(kwargs.get("shell"))):
                environment = kwargs.get("env")
                kwargs["env"] = folder.put_first(os.environ if environment is None else environment)
        real(self, args, *rest, **kwargs)

    replace(stack, subprocess.Popen, "__init__", popen)
    replace(stack, os, "system", _with_path(os.system, folder))


def _with_path(system: Callable[[Any], int], folder: _Folder) -> Callable[[Any], int]:
    @functools.wraps(system)
    def call(command: Any) -> int:
        if current() is None:
            return system(command)
        before = os.environ.get("PATH")
        os.environ.update(folder.put_first(os.environ))
        try:
            return system(command)
        finally:
            if before is None:
                del os.environ["PATH"]
            else:
                os.environ["PATH"] = before

    return call


def _instead(args: Any, options: Sequence[str], shell: bool) -> Any:
    """Returns the command that is run in the place of one: the same where it is not torchrun's."""
    if isinstance(args, str):
        if not shell or not _OF_SHELLS.isdisjoint(args):
            return args
        try:
            found = _arguments(shlex.split(args))
        except ValueError:
            return args
        return args if found is None else shlex.join(_command(found, options))
    if shell or not isinstance(args, list | tuple):
        return args
    found = _arguments([os.fsdecode(each) for each in args])
    return args if found is None else _command(found, options)


def _is_of_shell(args: Any, shell: bool) -> bool:
    """Reports whether a shell runs a command, or a script of its own."""
    if shell:
        return True
    if not isinstance(args, list | tuple) or not args:
        return False
    name = os.path.basename(os.fsdecode(args[0]))
    return name in _SHELLS or name.endswith(".sh")


def _caller() -> str:
    """Returns the place in the program that starts a process: what has called subprocess."""
    frame = sys._getframe(2)
    while frame.f_code.co_filename == subprocess.__file__ and frame.f_back is not None:
        frame = frame.f_back
    return runtime.place_of(frame)


def _is_of_rank(args: Any, environment: Mapping[Any, Any]) -> bool:
    """Reports whether a command runs a script of Python's that is told its rank."""
    if not isinstance(args, list | tuple) or len(args) < 2:
        return False
    name, *rest = (os.fsdecode(each) for each in args)
    if not os.path.basename(name).startswith("python") or program.found_in([name, *rest]) is None:
        return False
    return any(map(_RANK.match, rest)) or any(
        environment.get(name, os.environ.get(name)) != os.environ.get(name) for name in _NUMBERS
    )


def _command(arguments: Sequence[str], options: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "torchemu", "run", *options, *arguments]


def _arguments(argv: Sequence[str]) -> list[str] | None:
    """Returns the arguments of torchrun, or a launcher's module and its own; None where it is another program."""
    name = os.path.basename(argv[0]) if argv else ""
    if name == "torchrun":
        return list(argv[1:])
    if name.startswith("python") and _MODULE in argv:
        at = argv.index(_MODULE)
        if argv[at - 1] == "-m" and all(each.startswith("-") for each in argv[1:at]):
            return list(argv[at + 1 :])
    found = program.found_in(argv) if argv and name.startswith("python") else None
    if found is not None and found[0] is program.Module and found[1][0] in program.LAUNCHERS:
        return ["-m", *found[1]]
    return None
