"""``torchemu stubs``: stubs by which editors and type checkers resolve ``import torch`` where there is no PyTorch."""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

from torchemu.errors import CommandError
from torchemu.frontends import base

_STUBS = Path(__file__).resolve().parents[2] / "torchemu-stubs"
_OWN = re.compile(r"from torchemu import (\w+) as \1")
_HEADER = '"""Names of torchemu, for programs that import torch; written by torchemu stubs."""'


class StubsError(CommandError):
    """Stubs that cannot be written, and why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments to its parser."""
    parser.description = (
        "Writes stubs for torch, with the names that torchemu's own has, to FOLDER/torch. Pyright and Pylance look "
        "into typings by themselves; for mypy set mypy_path = typings. Where PyTorch is installed they are not needed."
    )
    parser.add_argument(
        "folder", nargs="?", default="typings", metavar="FOLDER", help="where they go (default: typings)"
    )
    parser.set_defaults(action=write)


def write(options: argparse.Namespace) -> int:
    """Writes the stubs anew.

    Raises:
        StubsError: there is something else, or the folder cannot be written.
    """
    (front_end,) = (f for f in base.front_ends() if f.torch is not None and f.torch.is_default)
    target = Path(options.folder, *front_end.packages)
    try:
        if target.exists() and _HEADER not in (target / "__init__.pyi").read_text(encoding="utf-8"):
            raise StubsError(f"{target}: there is something else, which is left as it is")
        shutil.rmtree(target, ignore_errors=True)
        for path, text in stubs(front_end).items():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StubsError(f"{error.filename}: {os.strerror(error.errno or 0)}") from None
    print(f"{target}: stubs for programs that import {target.name}")
    return 0


def stubs(front_end: base.FrontEnd) -> dict[str, str]:
    """Returns the files of the one package that a front end stands for, by their paths in it: what torchemu's stubs
    have for the front end's own modules, and the names of the modules that it has under second names."""
    ((package, home),) = front_end.packages.items()
    seconds = {name.removeprefix(f"{package}."): module for name, module in front_end.modules.items()}
    found = {}
    for file in sorted(_STUBS.rglob("*.pyi")):
        path = file.relative_to(_STUBS)
        name = ".".join(path.with_suffix("").parts).removesuffix("__init__").rstrip(".")
        if not name or _is_there(f"{home}.{name}"):
            found[path.as_posix()] = f"{_HEADER}\n\n" + "".join(_lines(file, seconds))
    for name, module in seconds.items():
        found.setdefault(f"{name.replace('.', '/')}.pyi", f"{_HEADER}\n\nfrom {module} import *\n")
    return found


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _lines(file: Path, seconds: Collection[str]) -> Iterator[str]:
    """Yields the lines of a stub, without its own docstring and the modules that torchemu has besides."""
    for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
        module = _OWN.match(line)
        if not line.startswith('"""') and (module is None or module[1] in seconds):
            yield line
