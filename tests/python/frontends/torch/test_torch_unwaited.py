"""The same as launch/test_unwaited.py on the installed PyTorch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from launch import written
from unwaited_cases import CROSSED, WRONG, program, right, streams

pytest.importorskip("torch")


def _run(file: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", "2", *flags, str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def _functions(texts: Iterable[str]) -> str:
    """Returns a program of a function for each text, called one after another."""
    parts = []
    for i, text in enumerate(texts):
        body = text.replace("\n", "\n    ")
        parts.append(f"def f{i}(x, y, big):\n    {body}\nf{i}(x.clone(), y.clone(), big.clone())\ndist.barrier()")
    return "\n".join(parts)


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
def test_each_use_before_its_wait_is_warned_of(tmp_path: Path, backend: str) -> None:
    bodies = _functions(WRONG.values())
    done = _run(written(tmp_path, program(backend, bodies)))
    assert done.returncode == 0, done.stderr
    for i, name in enumerate(WRONG):
        assert f"in f{i} " in done.stderr, (name, done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["gloo", "nccl"])
def test_right_programs_are_not(tmp_path: Path, backend: str) -> None:
    bodies = _functions(right(backend).values())
    for flags in ((), ("--check",)):
        done = _run(written(tmp_path, program(backend, bodies)), *flags)
        assert done.returncode == 0 and "nwaited" not in done.stderr, done.stderr


def test_check_makes_it_an_error(tmp_path: Path) -> None:
    done = _run(written(tmp_path, program("gloo", WRONG["reads a result"])), "--check")
    assert done.returncode == 1 and "RaceError" in done.stderr


@pytest.mark.slow
def test_streams_that_read_what_another_is_still_to_write(tmp_path: Path) -> None:
    done = _run(written(tmp_path, streams(*CROSSED, "right")))
    assert done.returncode == 0 and done.stderr.count("UnwaitedWarning") == len(CROSSED), done.stderr
    for name in CROSSED:
        assert f"in {name} reads it on stream" in done.stderr, done.stderr
    for name, status in [(CROSSED[0], 1), ("right", 0)]:
        assert _run(written(tmp_path, streams(name)), "--check").returncode == status


PREFETCHED = """
import torch
side, wanted = torch.cuda.Stream(), torch.zeros(4, device="cuda")
for i in range(3):
    batch = (torch.ones(4) * i).pin_memory()
    with torch.cuda.stream(side): ahead = batch.cuda(non_blocking=True) + 1
    torch.cuda.current_stream().wait_stream(side)
    wanted += ahead
print(wanted.tolist())
"""


@pytest.mark.slow
def test_what_the_host_computes_is_there_for_each_stream(tmp_path: Path) -> None:
    done = _run(written(tmp_path, PREFETCHED))
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.splitlines() == ["[6.0, 6.0, 6.0, 6.0]"] * 2
