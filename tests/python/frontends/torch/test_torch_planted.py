"""The programs of planted/hosts.py on the installed PyTorch: the right ones are clean, and each defect is reported."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from planted import hosts, marks

pytest.importorskip("torch")

PROGRAMS = {**hosts.PROGRAMS, **hosts.OF_PYTORCH}
TEXTS = {**PROGRAMS, **hosts.OF_SYMMETRIC_MEMORY}

CAUGHT = """
def caught(name, function):
    from torchemu.errors import RaceError
    try:
        function()
    except RaceError as error:
        print(f"<{name}>{error}</{name}>")
    torch.cuda.set_stream(torch.cuda.default_stream())
    try:
        torch.cuda.synchronize()
    except RaceError as error:  # the launch fails, too
        print(f"<{name}>{error}</{name}>")
    dist.barrier()
"""


def program(variants: list[tuple[str, str | None]]) -> str:
    """Returns a program that runs programs with defects, as functions, one after another."""
    parts = [hosts.BEGIN + CAUGHT]
    for i, (name, defect) in enumerate(variants):
        body = marks.planted(TEXTS[name], defect).replace("\n", "\n    ")
        parts.append(f"def f{i}():{body}\ncaught('{name}/{defect}', f{i})\n")
    return "".join(parts)


def finished(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Runs a program on two ranks."""
    file = folder / "program.py"
    file.write_text(text)
    command = [
        sys.executable,
        "-m",
        "torchemu",
        "run",
        "--torch",
        "real",
        "--nproc-per-node",
        "2",
        "--check",
        str(file),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def run(folder: Path, text: str) -> str:
    """Runs a program on two ranks, and returns what it says."""
    done = finished(folder, text)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_right_programs_are_clean(tmp_path: Path) -> None:
    said = run(tmp_path, program([(name, None) for name in [*PROGRAMS, *hosts.OF_SYMMETRIC_MEMORY]]))
    assert "/None>" not in said, said


def test_planted_defects_are_reported_by_their_lines(tmp_path: Path) -> None:
    variants = [(name, defect) for name, text in PROGRAMS.items() for defect in marks.defects(text)]
    text = program(variants)
    said = run(tmp_path, text)
    for i, (name, defect) in enumerate(variants):
        begin = text[: text.index(f"def f{i}():")].count("\n")
        wanted = {begin + line for line in marks.named(PROGRAMS[name], defect)} | marks.named(hosts.BEGIN, defect)
        told = re.findall(f"<{re.escape(name)}/{defect}>(.*?)</", said, re.DOTALL)
        found = [lines for report in told for lines in marks.reports(report)]
        assert found and found[0] and all(lines <= wanted for lines in found), (name, defect, wanted, found, told)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "defect"),
    [(name, defect) for name, text in hosts.OF_SYMMETRIC_MEMORY.items() for defect in marks.defects(text)],
)
def test_planted_defects_in_symmetric_memory(tmp_path: Path, name: str, defect: str) -> None:
    text = hosts.BEGIN + marks.planted(TEXTS[name], defect)
    done = finished(tmp_path, text)
    begin = hosts.BEGIN.count("\n")
    wanted = {begin + line for line in marks.named(TEXTS[name], defect)}
    found = [
        lines
        for report in re.findall(r"RaceError: (.*?)=====", done.stderr, re.DOTALL)
        for lines in marks.reports(report)
    ]
    assert done.returncode == 1 and found and found[0] and found[0] <= wanted, (wanted, found, done.stderr)
