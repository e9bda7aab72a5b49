"""Programs that ranks start as processes.

In the place of torchrun, of other launchers, and of Python with a program that imports PyTorch torchemu runs, in a
process, World and time of its own; shells find it by their names. Programs that are told their ranks are ranks of the
World where the one that starts them is its only one; else they are processes of the system, and a line says so.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torchemu import runtime
from torchemu.launch import rank_programs, shell_commands
from torchemu.launch.patches import current, replace
from torchemu.runtime import program
from torchemu.runtime.frames import is_installed

_OF_SHELLS = frozenset(";&|<>$`\n(){}*?~")
"""Characters of commands that only a shell understands."""

_SHELLS = frozenset({"sh", "ash", "bash", "dash", "ksh", "zsh"})


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
    """A folder in which torchemu has the names of launchers and of Python, made when a rank first starts a shell.

    Args:
        stack: it is there until this one is closed.
        options: those of ``torchemu run`` that are this run's.
    """

    def __init__(self, stack: contextlib.ExitStack, options: Sequence[str]) -> None:
        self._stack, self._options = stack, options
        self._made = ""

    def put_first(self, environment: Mapping[Any, Any]) -> dict[Any, Any]:
        """Returns an environment in which names are looked for there first."""
        if not self._made:
            self._made = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="torchemu-"))
            shell_commands.write(Path(self._made), self._options)
        path = os.pathsep.join([self._made, environment.get("PATH", os.defpath)])
        return {**environment, "PATH": path, shell_commands.STARTED: shell_commands.numbers(os.environ)}


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
                told.add(f"torchemu: the process that {_caller()} starts is{shell_commands.OUTSIDE}")
            elif args is given and (made := _of_torch(args)) is not None:
                environment = kwargs.get("env")
                kwargs["env"] = {**(os.environ if environment is None else environment), shell_commands.PLAIN: "1"}
                args = _command(made, options)
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
        before = {name: os.environ.get(name) for name in ("PATH", shell_commands.STARTED)}
        os.environ.update(folder.put_first(os.environ))
        try:
            return system(command)
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    return call


def _instead(args: Any, options: Sequence[str], shell: bool) -> Any:
    """Returns the command that is run in the place of one: the same where it is not torchrun's."""
    if isinstance(args, str):
        if not shell or not _OF_SHELLS.isdisjoint(args):
            return args
        try:
            found = shell_commands.arguments(shlex.split(args))
        except ValueError:
            return args
        return args if found is None else shlex.join(_command(found, options))
    if shell or not isinstance(args, list | tuple):
        return args
    found = shell_commands.arguments([os.fsdecode(each) for each in args])
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


def _words(args: Any) -> list[str] | None:
    """Returns the words of a command that runs a script of Python's; None where it is another one."""
    if not isinstance(args, list | tuple) or len(args) < 2:
        return None
    words = [os.fsdecode(each) for each in args]
    is_python = os.path.basename(words[0]).startswith("python")
    return words if is_python and program.found_in(words) is not None else None


def _is_of_rank(args: Any, environment: Mapping[Any, Any]) -> bool:
    """Reports whether a command runs a script of Python's that is told its rank."""
    words = _words(args)
    started = shell_commands.numbers(os.environ)
    return words is not None and shell_commands.is_of_rank(words[1:], {**os.environ, **environment}, started)


def _of_torch(args: Any) -> list[str] | None:
    """Returns the arguments of torchemu that run a script of the program's which imports PyTorch; None for another
    command: what packages start they talk to in their own way."""
    words = _words(args)
    found = None if words is None else program.found_in(words)
    if words is None or found is None or found[0] is program.Module or is_installed(os.path.abspath(found[1][0])):
        return None
    return shell_commands.of_torch(words)


def _command(arguments: Sequence[str], options: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "torchemu", "run", *options, *arguments]
