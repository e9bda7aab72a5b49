"""The same as launch/test_watchdog.py on the installed PyTorch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from launch import written
from watchdog_cases import PROGRAM, is_ended

pytest.importorskip("torch")


def _run(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    file = str(written(tmp_path, PROGRAM))
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", "2", "--virtual-clock"]
    return subprocess.run([*command, file, *arguments], capture_output=True, text=True, timeout=300)


def test_nccls_watchdog_ends_the_rank(tmp_path: Path) -> None:
    done = _run(tmp_path, "nccl", "cuda")
    assert is_ended(done.returncode, done.stdout, done.stderr), done


@pytest.mark.parametrize("backend", ["gloo", "cpu:gloo,cuda:nccl"])
def test_gloo_has_none(tmp_path: Path, backend: str) -> None:
    done = _run(tmp_path, backend, "cpu")
    assert (done.returncode, done.stdout) == (0, "goes on\ncatches DistBackendError\n"), done
