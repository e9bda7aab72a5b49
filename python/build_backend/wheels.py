"""Builds a wheel for each CPython on this machine that is new enough: ``make wheels``.

    python python/build_backend/wheels.py [FOLDER]

Looked for are python3 and python3.N on PATH, and pyenv's versions. Of several of one version the first is taken that
can build. The tools are those that python/requirements.lock pins, in an environment of each wheel's own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OLDEST = (3, 11)
TOOLS = ("hatchling", "packaging", "pathspec", "pluggy", "PyBindGen", "trove-classifiers")
ABOUT = (
    "import sys, sysconfig; print(sys.implementation.name, *sys.version_info[:3], "
    "int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))))"
)


def candidates(environment: dict[str, str]) -> Iterator[Path]:
    """Yields programs that may be Pythons: those on PATH, the plain one first, and pyenv's."""
    folders = [Path(folder) for folder in environment.get("PATH", "").split(os.pathsep) if folder]
    yield from (folder / "python3" for folder in folders)
    for folder in folders:
        yield from sorted(p for p in folder.glob("python3.*") if re.fullmatch(r"python3\.\d+", p.name))
    pyenv = environment.get("PYENV_ROOT") or os.path.join(environment.get("HOME", "/"), ".pyenv")
    yield from sorted(Path(pyenv, "versions").glob("*/bin/python3"))


def version(python: Path) -> tuple[int, ...] | None:
    """Returns the version of a CPython that is new enough and has a GIL; None of any other program."""
    try:
        done = subprocess.run([python, "-c", ABOUT], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = done.stdout.split()
    if done.returncode != 0 or len(words) != 5 or words[0] != "cpython" or words[4] != "0":
        return None
    found = tuple(map(int, words[1:4]))
    return found if found[:2] >= OLDEST else None


def lacks(python: Path) -> str:
    """Returns what a Python lacks in order to build; empty for nothing."""
    script = ROOT / "python" / "build_backend" / "prerequisites.sh"
    done = subprocess.run(["sh", script, "setup", python], stderr=subprocess.PIPE, text=True)
    return done.stderr.strip() if done.returncode else ""


def pythons(environment: dict[str, str]) -> dict[tuple[int, ...], Path]:
    """Returns the Pythons to build for, one of each minor version, and says which cannot."""
    found: dict[tuple[int, ...], Path] = {}
    missing: dict[tuple[int, ...], str] = {}
    seen = set()
    for python in candidates(environment):
        real = python.resolve()
        if not os.access(python, os.X_OK) or real in seen:
            continue
        seen.add(real)
        its = version(python)
        if its is None or its[:2] in found:
            continue
        if told := lacks(python):
            missing[its[:2]] = f"{python}: {told}"
        else:
            found[its[:2]] = python
    for minor in missing.keys() - found.keys():
        print(f"no wheel for CPython {minor[0]}.{minor[1]}: {missing[minor]}", file=sys.stderr)
    return dict(sorted(found.items()))


def pinned() -> list[str]:
    """Returns the tools that build a wheel, in their versions."""
    lines = (ROOT / "python" / "requirements.lock").read_text().splitlines()
    return [line for line in lines if line.partition("==")[0] in TOOLS]


def run(*command: str | Path) -> None:
    """Runs a command in the root of the repository, in which no other Python's environment is seen."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def build(python: Path, folder: Path) -> None:
    """Builds the wheel of a Python into a folder."""
    with tempfile.TemporaryDirectory(prefix="torchemu-wheel-") as made:
        run(python, "-m", "venv", made)
        its = Path(made, "bin", "python")
        run(its, "-m", "pip", "install", "--quiet", *pinned())
        run(its, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT)


def main(arguments: Sequence[str]) -> int:
    """Builds all; returns the exit status."""
    folder = Path(arguments[0] if arguments else ROOT / "dist").resolve()
    chosen = pythons(dict(os.environ))
    if not chosen:
        print("there is no CPython here that a wheel can be built for", file=sys.stderr)
        return 1
    for (major, minor), python in chosen.items():
        print(f"==> a wheel for CPython {major}.{minor}, by {python}", flush=True)
        build(python, folder)
    for wheel in sorted(folder.glob("torchemu-*.whl")):
        print(f"    {wheel}  {wheel.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
