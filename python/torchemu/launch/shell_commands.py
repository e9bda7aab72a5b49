"""Commands that shells find in the place of Python, of torchrun and of other launchers.

A rank that starts a shell puts a folder with them first in PATH; this module is what they run. A command that starts
ranks, or a program that imports PyTorch, is run by torchemu, in a World of its own; any other one is what it was.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from torchemu.runtime import program

TORCHRUN = "torchrun"
_MODULE = "torch.distributed.run"
_TORCH = "torch"
_SCRIPTS = ("accelerate", "deepspeed")
"""Launchers' names, of which not all are among what their packages say that they install."""

NUMBERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
"""Variables that are handed down to what is no rank, as they are."""

PLAIN = "TORCHEMU_AS_PYTHON"
"""The variable by which torchemu runs a program as Python would: without what torchrun tells its workers."""

STARTED = "TORCHEMU_STARTED_BY"
"""The variable that has the numbers of the rank that started the shell."""

OUTSIDE = (
    " a rank outside of the simulation, with gloo and without devices: torchrun, torch.multiprocessing and "
    "`torchemu run --nproc-per-node` start ranks inside"
)

_RANK = re.compile(r"--(local|global)?[-_]?rank(=|$)")
_NAME = re.compile(r"[\w.-]+")
"""A package's, with which what another one requires begins."""


def names() -> set[str]:
    """Returns the names of Python, of launchers, and of the commands of packages that need PyTorch."""
    found = {TORCHRUN, "python", "python3", os.path.basename(sys.executable), *_SCRIPTS}
    for entry in importlib.metadata.entry_points(group="console_scripts"):
        if entry.dist is not None and _is_of_torch(entry.dist.name):
            found.add(entry.name)
    return found


def _is_of_torch(package: str) -> bool:
    """Reports whether a package is PyTorch, or needs it, itself or by others."""
    seen, left = {package}, [package]
    while left:
        required = _required(left.pop())
        left += required - seen
        seen |= required
    return _TORCH in seen


@functools.cache
def _required(package: str) -> frozenset[str]:
    """Returns the names of the packages that one requires; none where it is not installed."""
    try:
        required = importlib.metadata.requires(package) or ()
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return frozenset()
    found = [_NAME.match(each) for each in required if "extra" not in each]
    return frozenset(each[0] for each in found if each is not None)


def numbers(environment: Mapping[str, str]) -> str:
    """Returns what an environment says of a rank."""
    return "/".join(environment.get(name, "") for name in NUMBERS)


def is_of_rank(arguments: Sequence[str], environment: Mapping[str, str], started: str) -> bool:
    """Reports whether a program is told its rank.

    Args:
        arguments: the program's.
        environment: the program's.
        started: what the environment of who starts it says of a rank; see numbers.
    """
    return any(map(_RANK.match, arguments)) or numbers(environment) != started


def arguments(argv: Sequence[str]) -> list[str] | None:
    """Returns the arguments of torchrun, or a launcher and its own; None where it is another program."""
    name = os.path.basename(argv[0]) if argv else ""
    if name == TORCHRUN:
        return list(argv[1:])
    if name in _SCRIPTS:
        script = shutil.which(argv[0]) or shutil.which(name, path=os.path.dirname(sys.executable))
        return None if script is None else ["--nproc-per-node", "1", script, *argv[1:]]
    if not name.startswith("python"):
        return None
    if _MODULE in argv:
        at = argv.index(_MODULE)
        if argv[at - 1] == "-m" and all(each.startswith("-") for each in argv[1:at]):
            return list(argv[at + 1 :])
    found = program.found_in(argv)
    if found is not None and found[0] is program.Module and found[1][0] in program.LAUNCHERS:
        return ["-m", *found[1]]
    return None


def of_torch(argv: Sequence[str]) -> list[str] | None:
    """Returns the arguments of torchemu that run a Python program which imports PyTorch; None where it does not, as
    far as can be seen."""
    found = program.found_in(argv)
    if found is None:
        return None
    make, rest = found
    try:
        script = _script_of(rest[0]) if make is program.Module else rest[0]
        if script is None or not _imports_torch(program.program([script]).names()):
            return None
    except (OSError, SyntaxError, ImportError, ValueError):
        return None
    return ["--nproc-per-node", "1", *(["-m"] if make is program.Module else []), *rest]


def _script_of(module: str) -> str | None:
    """Returns the file of a module that is not of Python's library; of a package, that of its __main__."""
    sys.path.insert(0, os.getcwd())
    try:
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{module}.__main__")
    finally:
        del sys.path[0]
    return None if spec is None or not spec.has_location else spec.origin


def _imports_torch(modules: set[str]) -> bool:
    outermost = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names
    if any(map(_is_of_torch, outermost)):
        return True
    unknown = [name for name in outermost if not _is_installed(name)]
    packages = importlib.metadata.packages_distributions() if unknown else {}
    return any(_is_of_torch(package) for name in unknown for package in packages.get(name, ()))


def _is_installed(package: str) -> bool:
    try:
        importlib.metadata.distribution(package)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return False
    return True


def _of_text(argv: Sequence[str], folder: str) -> list[str] | None:
    """Returns the arguments of torchemu that run ``python -c`` with a text which imports PyTorch, put into a file.

    Args:
        folder: where.
    """
    if len(argv) < 3 or argv[1] != "-c" or re.search(r"\bimport torch\b|\bfrom torch\b", argv[2]) is None:
        return None
    with tempfile.NamedTemporaryFile("w", suffix=".py", dir=folder, delete=False, encoding="utf-8") as file:
        file.write(argv[2])
    return ["--nproc-per-node", "1", file.name, *argv[3:]]


def _run(folder: str, name: str, options: Sequence[str], rest: Sequence[str]) -> None:
    """Puts what a command means in the place of this process.

    Args:
        folder: that with the commands.
        name: the command's.
        options: those of ``torchemu run``.
        rest: the command's arguments.
    """
    path = os.environ.get("PATH", os.defpath)
    others = [each for each in path.split(os.pathsep) if each != folder]
    real = shutil.which(name, path=os.pathsep.join([*others, os.path.dirname(sys.executable)]))
    argv, is_plain = [name, *rest], name != TORCHRUN
    if name.startswith("python"):
        found = arguments(argv)
        is_plain = found is None
        found = found or of_torch(argv) or _of_text(argv, folder)
        started = os.environ.get(STARTED, numbers(os.environ))
        if is_plain and found is not None and is_of_rank(rest, os.environ, started):
            print(f"torchemu: {shlex.join(argv)} is{OUTSIDE}", file=sys.stderr, flush=True)
            os.execv(sys.executable, [sys.executable, *rest])
    elif name == TORCHRUN:
        found = list(rest)
    else:
        found = None if real is None else ["--nproc-per-node", "1", real, *rest]
    if found is not None:
        os.environ.update({PLAIN: "1"} if is_plain else {})
        os.execv(sys.executable, [sys.executable, "-m", "torchemu", "run", *options, *found])
    if real is None:
        print(f"{name}: command not found", file=sys.stderr)
        sys.exit(127)
    os.execv(real, [real, *rest])  # Python looks for itself in PATH where its first argument is a name alone


def write(folder: Path, options: Sequence[str]) -> None:
    """Writes the commands.

    Args:
        folder: where.
        options: those of ``torchemu run`` with which they run it.
    """
    for name in names():
        command = folder / name
        command.write_text("".join(_lines(str(folder), name, options)), encoding="utf-8")
        command.chmod(0o755)


def _lines(folder: str, name: str, options: Sequence[str]) -> Iterator[str]:
    yield "#!/bin/sh\n"
    words = [sys.executable, "-m", __name__, folder, name, str(len(options)), *options]
    yield f'exec {shlex.join(words)} "$@"\n'


if __name__ == "__main__":
    _folder, _name, _count, *_rest = sys.argv[1:]
    _run(_folder, _name, _rest[: int(_count)], _rest[int(_count) :])
