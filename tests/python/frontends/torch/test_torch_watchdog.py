"""The same as launch/test_watchdog.py on the installed PyTorch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from launch import written
from watchdog_cases import PROGRAM, is_ended

pytest.importorskip("torch")


def _run(
    tmp_path: Path, *arguments: str, program: str = PROGRAM, flags: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    file = str(written(tmp_path, program))
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", "--nproc-per-node", "2", "--virtual-clock"]
    return subprocess.run([*command, *flags, file, *arguments], capture_output=True, text=True, timeout=300)


def test_nccls_watchdog_ends_the_rank(tmp_path: Path) -> None:
    done = _run(tmp_path, "nccl", "cuda")
    assert is_ended(done.returncode, done.stdout, done.stderr), done


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["gloo", "cpu:gloo,cuda:nccl"])
def test_gloo_has_none(tmp_path: Path, backend: str) -> None:
    done = _run(tmp_path, backend, "cpu")
    assert (done.returncode, done.stdout) == (0, "goes on\ncatches DistBackendError\n"), done


SURVIVOR = """
import sys, time
import torch, torch.distributed as dist
backend, device = sys.argv[1:]
dist.init_process_group(backend)
time.sleep(0.01)
t = torch.ones(1, device=device)
start = time.time()
try:
    dist.all_reduce(t)
    t.item()
    print("never")
except dist.DistBackendError as error:
    print(round(time.time() - start), str(error).splitlines()[0].endswith("; rank 1 was killed at 5ms"))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "device", "seconds"), [("gloo", "cpu", 1800), ("nccl", "cuda", 600)])
def test_the_survivors_of_a_fault_learn_of_it_after_their_groups_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str, device: str, seconds: int
) -> None:
    """The program has asked for none: PyTorch's own count then."""
    monkeypatch.setenv("TORCH_NCCL_BLOCKING_WAIT", "1")
    faults = tmp_path / "faults.yaml"
    faults.write_text("faults: [{kill: 1, at: 5e6}]\n")
    done = _run(tmp_path, backend, device, program=SURVIVOR, flags=["--faults", str(faults)])
    assert (done.returncode, done.stdout) == (0, f"{seconds} True\n"), done


LATE = """
import time
import torch, torch.distributed as dist
dist.init_process_group("nccl")
if dist.get_rank() == 1:
    time.sleep(700)
t = torch.ones(1, device="cuda")
dist.all_reduce(t)
t.item()
"""


def test_a_default_timeout_ends_what_lasts_longer(tmp_path: Path) -> None:
    done = _run(tmp_path, program=LATE)
    assert (
        done.returncode == 1
        and "DistBackendError: Watchdog caught collective operation timeout: after 600000 ms" in (done.stderr)
    ), done
