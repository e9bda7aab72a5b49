"""Faults are named: each program of tests/golden/diagnosis prints what its golden file says.

``pytest -k diagnosis --rewrite`` writes the golden files, and the pages of docs that quote programs and output.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from conftest import ROOT
from launch import TIME, launch, unmarked

GOLDEN = ROOT / "tests" / "golden" / "diagnosis"
PROGRAMS = sorted(GOLDEN.glob("*.py"))
PAGES = sorted((ROOT / "docs").glob("*.md"))
PROGRAM = re.compile(r"<!-- (\w+\.(?:py|yaml)) -->\n```\w+\n(.*?)```\n", re.DOTALL)
OUTPUT = re.compile(r"```console\n\$ (torchemu run (?![^\n]*--torch real)[^\n]*)\n(.*?)```\n", re.DOTALL)
"""Outputs of commands; those that want an installed PyTorch are looked at where there is one (test_torch_docs.py)."""


def command(program: Path) -> str:
    """How a program is started: what its first line says."""
    mark, line = program.read_text().splitlines()[0].split(" ", 1)
    assert mark == "#" and line.startswith("torchemu run "), f"{program} does not begin with how it is started"
    return line


def printed(line: str) -> str:
    """Returns what the command prints, without the folder's path, and its exit status."""
    outcome = launch(*shlex.split(line)[2:])
    text = (outcome.out + outcome.err).replace(f"{GOLDEN}/", "")
    assert str(ROOT) not in text
    return f"$ {line}\n{text}exit status {outcome.status}\n"


def same(file: Path, text: str, rewrite: bool) -> None:
    """Compares a file with a text, or writes it. Times may differ: what an operation costs is other tests' concern."""
    if rewrite:
        file.write_text(text)
    assert TIME.sub("TIME", unmarked(file.read_text())) == TIME.sub("TIME", unmarked(text))


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
    """A page quotes whole programs and the files they need, and the output of commands about them."""
    monkeypatch.chdir(GOLDEN)
    text = PROGRAM.sub(lambda found: quoted_program(found[1]), page.read_text())
    text = OUTPUT.sub(lambda found: quoted_output(found[1]), text)
    same(page, text, rewrite)


@pytest.mark.parametrize("page", PAGES, ids=lambda file: file.stem)
def test_files_that_commands_name_are_on_their_page(page: Path) -> None:
    text = page.read_text()
    shown = {name for name, _ in PROGRAM.findall(text)} | set(re.findall(r"golden/diagnosis/([\w.]+)\)", text))
    for line, _ in OUTPUT.findall(text):  # a long one is linked
        assert {word for word in shlex.split(line) if (GOLDEN / word).is_file()} <= shown, line


def test_lines_that_output_names_are_those_of_the_page() -> None:
    """A traceback's line number leads to the line that it quotes, counted on the page."""
    seen = 0
    for page in PAGES:
        text = page.read_text()
        programs = {name: source.splitlines() for name, source in PROGRAM.findall(text)}
        for name, number, quoted in re.findall(r'File "(\w+\.py)", line (\d+), in .*\n(?:\[rank\d+\]:)? +(.*)', text):
            if name in programs:
                assert programs[name][int(number) - 1].strip() == quoted.strip(), (page.name, name, number)
                seen += 1
    assert seen > 20


def quoted_program(name: str) -> str:
    """A block with a file, whole: so that its lines have the numbers that output tells."""
    language = name.rpartition(".")[2].replace("py", "python")
    return f"<!-- {name} -->\n```{language}\n{(GOLDEN / name).read_text()}```\n"


def quoted_output(line: str) -> str:
    """A block with a command and what it prints."""
    text = printed(line).rpartition("exit status ")[0]
    return f"```console\n{text}```\n"


def test_diagnosis_links_in_docs() -> None:
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)  # code has brackets, too
        for target in re.findall(r"\]\(([\w./-]+)\)", text):
            assert (page.parent / target).exists(), f"{page.name} refers to {target}"
