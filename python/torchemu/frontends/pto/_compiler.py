"""Compiles kernels in C++ with the machine's g++, against the headers here, and keeps what it has made."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

HEADERS = Path(__file__).parent / "include"
_LAST_HEADERS = Path(__file__).parent / "include_last"
_RUNTIME = HEADERS / "torchemu" / "runtime.cpp"

MISSING = "no g++: the Debian package g++ has it"
"""Why a kernel cannot be compiled."""

_COMMON = (
    "-std=gnu++20",
    "-O1",
    "-g",
    "-fPIC",
    "-w",
    "-fno-builtin",
    "-ffp-contract=off",
    "-D__gm__=",
    "-D__aicore__=",
)
_WATCHED = (
    "-fsanitize=thread",
    "--param=tsan-instrument-func-entry-exit=0",
    "--param=tsan-distinguish-volatile=1",
    "-fsanitize-coverage=trace-pc",
    "-fsanitize=integer-divide-by-zero,bounds,unreachable,return",
    "-fstack-protector-strong",
)
"""Makes the compiler call torchemu's runtime at each access to memory, block of code and undefined operation."""

_OF_CORES = {"aiv": ("-D__DAV_VEC__",), "aic": ("-D__DAV_CUBE__",)}
_OWN = (
    "-std=gnu++20",
    "-O1",
    "-g",
    "-fPIC",
    "-fno-builtin",
    "-fno-stack-protector",
    "-fno-tree-loop-distribute-patterns",
)
_LINKED = ("-shared", "-Wl,-Bsymbolic", "-Wl,-z,defs", "-lm")


def available() -> bool:
    """Says whether there is a g++."""
    return shutil.which("g++") is not None


def compiled_kernel(source: Path, core: str, include_dirs: Sequence[str | os.PathLike[str]]) -> Path:
    """Compiles a kernel; returns the shared library.

    Raises:
        RuntimeError: the compiler has found something wrong; the text is what it says.
    """
    return _compiled(source, (*_COMMON, *_WATCHED, *_OF_CORES[core]), include_dirs)


def compiled_orchestration(source: Path, include_dirs: Sequence[str | os.PathLike[str]]) -> Path:
    """Compiles an orchestration; see compiled_kernel."""
    return _compiled(source, _COMMON, include_dirs)


def _compiled(source: Path, flags: Sequence[str], include_dirs: Sequence[str | os.PathLike[str]]) -> Path:
    folders = [HEADERS, source.parent, *include_dirs, _LAST_HEADERS]
    command = [*flags, *(f"-I{folder}" for folder in folders)]
    text = _run(["g++", *command, "-E", str(source)], source)
    key = hashlib.sha256()
    for part in (text, *flags, _version(), _RUNTIME.read_text(encoding="utf-8"), *_OWN, *_LINKED):
        key.update(part.encode() + b"\0")
    target = _folder() / f"{source.stem}-{key.hexdigest()[:32]}.so"
    if not target.exists():
        _build(source, command, target)
    return target


def _build(source: Path, command: Sequence[str], target: Path) -> None:
    """Compiles and links; the library appears as a whole, whoever else makes the same."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        own, runtime, library = (f"{folder}/{name}" for name in ("kernel.o", "runtime.o", "library.so"))
        _run(["g++", *command, "-c", str(source), "-o", own], source)
        _run(["g++", *_OWN, f"-I{HEADERS}", "-c", str(_RUNTIME), "-o", runtime], source)
        _run(["g++", own, runtime, *_LINKED, "-o", library], source)
        os.replace(library, target)


def _run(command: Sequence[str], source: Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
    if done.returncode != 0:
        raise RuntimeError(f"{source} does not compile:\n{done.stderr.rstrip()}")
    return done.stdout


@cache
def _version() -> str:
    return subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True).stdout


def _folder() -> Path:
    """Returns the folder of the kept libraries: in the user's cache, or where that cannot be written a folder of this
    process."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return _writable(base)


@cache
def _writable(base: str) -> Path:
    folder = Path(base) / "torchemu" / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="torchemu-kernels-"))
    return folder
