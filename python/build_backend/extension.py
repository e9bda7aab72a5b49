"""Builds torchemu._core, the Go core as a CPython extension, with gopy.

Run as a script it brings python/torchemu/_core of the source tree up to date; the wheel build calls build().

gopy only generates the bindings here. Compiling is done by this script and not by `gopy build`, because that one links
twice, links a second Python interpreter into the extension, compiles with -Ofast (which lets C code flush subnormal
numbers to zero) and may rewrite go.mod.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IN_PLACE = ROOT / "python" / "torchemu" / "_core"
EXPORTED = "github.com/torchemu/torchemu/pybind"

# Everything that can change the extension: the Go tree without its tests, and what builds it.
SOURCE_DIRS = ("pybind", "tp", "distributed", "ccl", "multiprocessing", "torchemu")
SOURCE_SUFFIXES = {".go", ".s", ".h", ".c", ".yaml", ".yml"}
BUILD_FILES = ("go.mod", "go.sum", "python/build_backend/extension.py")

# What gopy prints, before it goes on to exit with status 0, about something that it could not read or wrap.
SKIPPED = r"^ignoring |gopy: |\berror (building|resolving)|programmer error"


class BuildError(Exception):
    """The extension could not be built; the text says why."""


def build(root: Path = ROOT) -> Path:
    """Builds the extension for the running Python, unless it is up to date, and returns the folder that holds it."""
    work = root / "build" / f"core-{sys.implementation.cache_tag}"
    work.mkdir(parents=True, exist_ok=True)
    with locked(work / "lock"):
        digest, stamp, out = inputs_digest(root), work / "digest", work / "out"
        if not (stamp.is_file() and stamp.read_text() == digest):
            print(f"==> building the Go core for Python {sys.version.split()[0]}", flush=True)
            stamp.unlink(missing_ok=True)
            check_prerequisites(root)
            compile_extension(generate(root, work / "gen"), out)
            stamp.write_text(digest)
        return out


def install(out: Path, target: Path) -> None:
    """Copies the built files to target, each at once: a process may be running on the old ones."""
    target.mkdir(parents=True, exist_ok=True)
    for file in sorted(out.iterdir()):
        copy = target / file.name
        if not copy.exists() or copy.stat().st_mtime_ns != file.stat().st_mtime_ns:
            part = target / f".{file.name}.part"
            shutil.copy2(file, part)
            part.replace(copy)
            if copy.suffix == ".py":
                py_compile.compile(str(copy), quiet=1)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock file at path, so that two builds in one tree (make, pip) take turns."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def inputs_digest(root: Path) -> str:
    """A hash over all that decides what the extension is: sources, build files, and the Python it is for."""
    total = hashlib.sha256(f"{sys.version}\n{sysconfig.get_path('include')}\n".encode())
    files = [root / name for name in BUILD_FILES]
    for folder in SOURCE_DIRS:
        files += (path for path in (root / folder).rglob("*") if is_source(path.relative_to(root)))
    for path in sorted(files):
        total.update(f"{path.relative_to(root)}\n".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def is_source(path: Path) -> bool:
    """Whether the file, named relative to the root, is an input of the extension."""
    return path.suffix in SOURCE_SUFFIXES and not path.name.endswith("_test.go") and "testdata" not in path.parts


def check_prerequisites(root: Path) -> None:
    """Raises a BuildError that names the first tool that is missing and the package to install."""
    script = root / "python" / "build_backend" / "prerequisites.sh"
    done = subprocess.run(["sh", str(script), "build", sys.executable], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(done.stderr.strip())


def generate(root: Path, gen: Path) -> Path:
    """Writes the binding's Go, C and Python sources to gen, a package inside the Go module, and returns gen."""
    shutil.rmtree(gen, ignore_errors=True)
    run("fetching Go modules", ["go", "mod", "download"], root)
    said = run("compiling gopy and generating the bindings", gopy_command(gen.relative_to(root)), root)
    patch_cgo_flags(gen / "pybind.go")
    patch_leaks(gen / "build.py")
    check_complete(said, root / "pybind", gen / "pybind.go")
    for name in ("pybind.py", "go.py"):
        patch_wrapper(gen / name)
    run("compiling goimports and fixing the imports", ["go", "tool", "goimports", "-w", "pybind.go"], gen)
    make_header(gen)
    run("generating the C side", [sys.executable, "build.py"], gen)
    return gen


def gopy_command(output: Path) -> list[str]:
    return [
        *("go", "tool", "gopy", "gen"),
        *(f"-vm={sys.executable}", "-name=pybind", "-no-make", f"-output={output}"),
        EXPORTED,
    ]


def check_complete(said: str, package: Path, generated: Path) -> None:
    """Raises a BuildError unless every exported function was wrapped: gopy leaves out what it can't and goes on."""
    wrapped = set(re.findall(r"^//export pybind_(\w+)$", generated.read_text(), re.MULTILINE))
    exported: set[str] = set()
    for file in package.glob("*.go"):
        if not file.name.endswith("_test.go"):
            exported.update(re.findall(r"^func ([A-Z]\w*)\(", file.read_text(), re.MULTILINE))
    missing = sorted(exported - wrapped)
    if missing or re.search(SKIPPED, said, re.MULTILINE):
        raise BuildError(f"gopy did not wrap all of pybind; missing: {', '.join(missing) or 'nothing'}\n{said}")


def patch_cgo_flags(file: Path) -> None:
    """Drops gopy's linker flags: an extension takes Python's symbols from the process that loads it, not a library."""
    replace_once(file, r"^#cgo LDFLAGS:[^\n]*\n", "")


def patch_leaks(file: Path) -> None:
    """Has the text freed that a function without a result but an error returns: gopy frees it for strings only."""
    leaky = r"^add_checked_function\((mod, '\w+', retval\('char\*'\))"
    file.write_text(re.sub(leaky, r"add_checked_string_function(\1", file.read_text(), flags=re.MULTILINE))


def patch_wrapper(file: Path) -> None:
    """Drops what gopy puts around the import of the extension: it changes the working directory and loads inspect."""
    imports = "".join(re.findall(r"^from \. import .*\n", file.read_text(), re.MULTILINE))
    preamble = r"^# gopy gen .*?^os\.chdir\(cwd\)\n"
    replace_once(file, preamble, f"\nimport collections\nimport collections.abc as _collections_abc\n{imports}")


def replace_once(file: Path, pattern: str, text: str) -> None:
    """Replaces the one match of pattern in file; anything else than one match means that gopy's output changed."""
    patched, count = re.subn(pattern, lambda _: text, file.read_text(), flags=re.MULTILINE | re.DOTALL)
    if count != 1:
        raise BuildError(f"{file.name}: expected one match of {pattern!r} in gopy's output, found {count}")
    file.write_text(patched)


def make_header(gen: Path) -> None:
    """Writes pybind_go.h, the C declarations of the exported Go functions, without compiling the package for it."""
    include = f"-I{sysconfig.get_path('include')}"
    command = ["go", "tool", "cgo", "-objdir", "objects", "-exportheader", "pybind_go.h", "--", include, "pybind.go"]
    run("generating the C header", command, gen)
    shutil.rmtree(gen / "objects")


def compile_extension(gen: Path, out: Path) -> None:
    """Compiles the package at gen into a shared library and gathers it and its Python wrappers in out."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    library = f"_pybind{sysconfig.get_config_var('EXT_SUFFIX')}"
    flags = ["-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w"]
    run("compiling the Go core", ["go", "build", *flags, "-o", library, "."], gen)
    for name in (library, "__init__.py", "pybind.py", "go.py"):
        shutil.copy2(gen / name, out / name)


def run(title: str, command: Sequence[str], folder: Path) -> str:
    """Runs a command, says what for and how long it took, and returns what it printed; fails with all of that."""
    print(f"    {title} ...", end="", flush=True)
    start = time.monotonic()
    environment = {**os.environ, "CGO_ENABLED": "1", "GOWORK": "off"}
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    print(f" {time.monotonic() - start:.1f} s", flush=True)
    if done.returncode != 0:
        raise BuildError(f"{title} failed: {' '.join(command)}\n{done.stdout}")
    return done.stdout


if __name__ == "__main__":
    try:
        install(build(), IN_PLACE)
    except BuildError as error:
        sys.exit(f"{error}")
