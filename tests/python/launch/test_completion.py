"""Shells complete torchemu's command lines: bash does, in its own words; scripts for the others parse."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torchemu.launch import cli, completion


def written(shell: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert cli.main(["completion", shell]) == 0
    file = folder / f"torchemu.{shell}"
    file.write_text(capsys.readouterr().out)
    return file


def completed(script: Path, *words: str) -> set[str]:
    """Returns what bash offers for the last of some words."""
    program = (
        f'source "{script}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        '_shtab_torchemu "$1" "${!#}" "${COMP_WORDS[COMP_CWORD-1]}"; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    command = ["bash", "-c", program, "bash", *words]
    return set(subprocess.run(command, cwd=script.parent, check=True, capture_output=True, text=True).stdout.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("swee", {"sweep"}),
        ("topology s", {"show"}),
        ("run --sched", {"--schedule", "--schedule-seed", "--schedule-depth"}),
        ("run --schedule r", {"random"}),
        ("run --topology sips", {"sips2", "sips8", "sips16", "sips.yaml"}),
        ("bench be", {"bench_a.py"}),
        ("run --ccl si", {"sips.yaml"}),
        ("bandwidth all_r", {"all_reduce"}),
        ("schema f", {"faults"}),
        ("help rep", {"report", "replay"}),
        ("run --no-such", set()),
    ],
)
def test_bash(words: str, offered: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("sips.yaml", "bench_a.py"):
        (tmp_path / name).touch()
    assert completed(written("bash", tmp_path, capsys), "torchemu", *words.split()) == offered


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_scripts_parse(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = written(shell, tmp_path, capsys)
    assert "torchemu" in script.read_text() and "--nproc-per-node" in script.read_text()
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} to parse it")
    subprocess.run([shell, "-n", script], check=True)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert cli.main(["completion", "bash"]) == 1
    assert "pip install shtab" in capsys.readouterr().err
