"""The first page and those about kernels: their programs run, and print what they say.

``pytest -k kernel_docs --rewrite`` puts what they print there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

PAGES = {ROOT / "docs" / f"{name}.md": n for name, n in (("kernels", 6), ("triton", 2), ("start", 5), ("mori", 2))}
"""The pages, and how many consoles they show."""

FILE = re.compile(r"<!-- file: ([\w.]+) -->\n```\w+\n(.*?)```\n", re.DOTALL)
CONSOLE = re.compile(r"```shell-session\n(.*?)```\n", re.DOTALL)
COMMANDS = {
    "python": [sys.executable],
    "torchemu": [sys.executable, "-m", "torchemu"],
    "pytest": [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
}
TOOK = re.compile(r" in \d+\.\d+s\b")  # of pytest
WIDE = frozenset({"CI", "BUILD_NUMBER", "COLUMNS"})
"""Variables that would have pytest print its summary wider than a reader's terminal does."""
OWN_FILES = re.compile(r"\S*/python/torchemu/")
OWN_LINES = re.compile(r"(…/torchemu/[\w./]+\.py):\d+")  # which change with the files


def printed(command: str, folder: Path) -> str:
    """Returns what a command prints, without the folder's name."""
    program, *args = command.split()
    done = subprocess.run(
        [*COMMANDS[program], *args],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env={name: value for name, value in os.environ.items() if name not in WIDE} | {"TORCHEMU_AS_TORCH": "1"},
    )
    text = re.sub(rf"{re.escape(str(folder.resolve()))}/", "", done.stdout + done.stderr)
    return OWN_LINES.sub(r"\1", OWN_FILES.sub("…/torchemu/", TOOK.sub("", text)))


def answered(block: re.Match[str], folder: Path) -> str:
    commands = [line for line in block[1].splitlines() if line.startswith("$ ")]
    return "```shell-session\n" + "".join(f"{c}\n{printed(c[2:], folder)}" for c in commands) + "```\n"


@pytest.mark.slow
@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.stem)
def test_kernel_docs(request: pytest.FixtureRequest, tmp_path: Path, file: Path) -> None:
    page = file.read_text()
    for name, text in FILE.findall(page):
        (tmp_path / name).write_text(text)
    text = CONSOLE.sub(lambda block: answered(block, tmp_path), page)
    if request.config.getoption("--rewrite"):
        file.write_text(text)
    assert len(CONSOLE.findall(text)) == PAGES[file]
    assert file.read_text() == text
