"""Libraries that train with PyTorch, as they are: losses are those of gloo's processes. See `make test-libraries`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

FOLDER = Path(__file__).parent
LOSSES = re.compile(r"^losses (.*)$", re.MULTILINE)


def started(folder: Path, module: str, ranks: int, program: str, *flags: str) -> subprocess.CompletedProcess[str]:
    """Runs a program under torchemu or torchrun, each of which starts programs with `python -m`."""
    command = [sys.executable, "-m", module, *flags, f"--nproc-per-node={ranks}", FOLDER / program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


def losses(done: subprocess.CompletedProcess[str]) -> list[float]:
    """Returns what rank 0 has printed."""
    found = LOSSES.findall(done.stdout)
    assert len(found) == 1, done.stdout + done.stderr
    return [float(value) for value in found[0].split()]


def emulated(folder: Path, ranks: int, program: str) -> list[float]:
    done = started(folder, "torchemu", ranks, program, "run", "--torch", "real")
    assert done.returncode == 0, done.stderr
    return losses(done)


def by_gloo(folder: Path, ranks: int, program: str) -> list[float]:
    """Gloo's threads may abort a process that exits with its groups: what it has printed counts, and not its status."""
    return losses(started(folder, "torch.distributed.run", ranks, program, "--standalone"))


@pytest.mark.shows("libraries: transformers")
@pytest.mark.shows("libraries: accelerate")
@pytest.mark.shows("libraries: Lightning")
@pytest.mark.shows("libraries: torchmetrics")
@pytest.mark.parametrize(
    ("library", "program"),
    [
        ("transformers", "transformers_trainer.py"),
        ("accelerate", "accelerate_loop.py"),
        ("lightning", "lightning_trainer.py"),
        ("torchmetrics", "metrics.py"),
    ],
)
def test_losses_are_those_of_gloo(library: str, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(library)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    found = emulated(tmp_path, 2, program)
    assert len(found) >= 4
    assert found == by_gloo(tmp_path, 2, program)


@pytest.mark.shows("libraries: Megatron-core")
def test_tensor_and_data_parallel_gpt_is_the_one_of_one_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Megatron-core runs on GPUs only, so gloo is no oracle. Weights are initialized alike for any number of ranks."""
    pytest.importorskip("megatron.core")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("TP", "1")
    whole = emulated(tmp_path, 1, "megatron_gpt.py")
    assert len(whole) == 4 and len(set(whole)) == 4
    for tp, ranks in ((1, 2), (2, 4), (4, 4)):
        monkeypatch.setenv("TP", str(tp))
        assert emulated(tmp_path, ranks, "megatron_gpt.py") == pytest.approx(whole, rel=1e-5), (tp, ranks)
