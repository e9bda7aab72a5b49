"""What goes wrong is named: each program of tests/golden/diagnosis prints what its golden file says.

``pytest -k diagnosis --rewrite`` writes the golden files, and the pages of docs that quote programs and output.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from conftest import ROOT
from launch import TIME, launch

GOLDEN = ROOT / "tests" / "golden" / "diagnosis"
PROGRAMS = sorted(GOLDEN.glob("*.py"))
PAGES = sorted((ROOT / "docs").glob("*.md"))
PROGRAM = re.compile(r"<!-- (\w+)\.py -->\n```python\n(.*?)```\n", re.DOTALL)
OUTPUT = re.compile(r"```console\n\$ (torchemu run [^\n]*)\n(.*?)```\n", re.DOTALL)


def command(program: Path) -> str:
    """How a program is started: what its first line says."""
    mark, line = program.read_text().splitlines()[0].split(" ", 1)
    assert mark == "#" and line.startswith("torchemu run "), f"{program} does not begin with how it is started"
    return line


def printed(line: str) -> str:
    """What the command prints, without the folder's path, and its exit status."""
    outcome = launch(*shlex.split(line)[2:])
    text = (outcome.out + outcome.err).replace(f"{GOLDEN}/", "")
    assert str(ROOT) not in text
    return f"$ {line}\n{text}exit status {outcome.status}\n"


def same(file: Path, text: str, rewrite: bool) -> None:
    """Compares a file with a text, or writes it. Times may differ: what an operation costs is other tests' concern."""
    if rewrite:
        file.write_text(text)
    assert TIME.sub("TIME", file.read_text()) == TIME.sub("TIME", text)


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda file: file.stem)
def test_diagnosis(program: Path, rewrite: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GOLDEN)
    same(program.with_suffix(".txt"), printed(command(program)), rewrite)


def test_each_diagnosis_has_a_program() -> None:
    assert {file.stem for file in GOLDEN.glob("*.txt")} == {file.stem for file in PROGRAMS}


@pytest.mark.parametrize("page", PAGES, ids=lambda file: file.stem)
def test_diagnosis_in_docs(page: Path, rewrite: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page quotes whole programs, and the output of commands about them."""
    monkeypatch.chdir(GOLDEN)
    text = PROGRAM.sub(lambda found: quoted_program(found[1]), page.read_text())
    text = OUTPUT.sub(lambda found: quoted_output(found[1]), text)
    same(page, text, rewrite)


def quoted_program(name: str) -> str:
    """A block with a program, without the line that says how it is started."""
    source = (GOLDEN / f"{name}.py").read_text().split("\n", 1)[1]
    return f"<!-- {name}.py -->\n```python\n{source}```\n"


def quoted_output(line: str) -> str:
    """A block with a command and what it prints."""
    text = printed(line).rpartition("exit status ")[0]
    return f"```console\n{text}```\n"


def test_diagnosis_links_in_docs() -> None:
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)  # code has brackets, too
        for target in re.findall(r"\]\(([\w./-]+)\)", text):
            assert (page.parent / target).exists(), f"{page.name} refers to {target}"
