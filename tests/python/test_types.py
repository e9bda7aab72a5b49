"""Type checkers know the names of torchemu: those that are there, and that others are not."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import ROOT

from torchemu.launch import cli

RIGHT = """
import torchemu
import torchemu as torch
import torchemu.distributed as dist
import torchemu.language as tl
import torchemu.nn as nn
import torchemu.nn.functional as F

def takes_tensor(t: torchemu.Tensor) -> torchemu.Tensor:
    return F.relu(t.float().view(3).exp() @ t + 1).sum()

takes_tensor(torchemu.ones(3))
takes_tensor(torch.zeros(3, dtype=torch.float16).requires_grad_().t())
rank: int = dist.get_rank()
layer: nn.Module = nn.Linear(3, 4)

@torchemu.kernel
def kernel(x: tl.Pointer) -> None: ...
"""

WRONG = (
    "torch.no_such_function(3)",
    "torch.onse(3)",
    "torch.ones(3).no_such_method()",
    "dist.all_redcue(torch.ones(3))",
    "nn.Linaer(3, 4)",
    "number: int = torch.ones(3)",
    "import torchemu.no_such_module",
)
"""Lines that a type checker refuses, each one."""

HEADER = "import torchemu as torch\nimport torchemu.distributed as dist\nimport torchemu.nn as nn\n"


PROGRAM = """
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.profiler import profile, record_function

def step(rank: int, t: torch.Tensor) -> torch.Tensor:
    dist.all_reduce(t, op=dist.ReduceOp.SUM)
    return F.relu(t.float().view(3).exp() @ t + 1).sum()

step(0, torch.ones(3, dtype=torch.float16, device="cuda"))
layer: nn.Module = nn.Linear(3, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
mp.spawn(step, args=(torch.ones(3),), nprocs=2)
"""
"""It runs where there is no PyTorch, too, and its names resolve there."""


def mypy(folder: Path) -> list[str]:
    """The errors that mypy finds in the files of a folder."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file=", *_files(folder)]
    environment = {**os.environ, "MYPYPATH": "typings"}
    return _errors(subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True).stdout)


def pyright(folder: Path) -> list[str]:
    """The errors that pyright finds, where it is installed."""
    found = shutil.which("basedpyright") or shutil.which("pyright")
    program = [sys.executable, "-m", "pyright"] if importlib.util.find_spec("pyright") else [found]
    if program == [None]:
        pytest.skip("pyright is not installed: make test-types")
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    command = [*program, "--pythonpath", sys.executable, "--level", "error"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return _errors(done.stdout)


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.py"))


def _errors(output: str) -> list[str]:
    return [line for line in output.splitlines() if "error" in line and ".py:" in line]


@pytest.mark.slow
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_type_checkers_know_the_names(checker: object, tmp_path: Path) -> None:
    assert callable(checker)
    (tmp_path / "right.py").write_text(RIGHT)
    for number, line in enumerate(WRONG):
        (tmp_path / f"wrong_{number}.py").write_text(HEADER + line + "\n")
    _check(checker(tmp_path), WRONG)


def _check(errors: list[str], wrong: Sequence[str]) -> None:
    assert not [e for e in errors if "wrong_" not in e]
    for number, line in enumerate(wrong):
        assert any(f"wrong_{number}.py:4" in e for e in errors), f"no error in {line!r}: {errors}"


@pytest.mark.slow
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_import_torch_resolves_without_pytorch(
    checker: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(checker)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["stubs"]) == 0
    (tmp_path / "right.py").write_text(PROGRAM)
    wrong = [*(line.replace("torchemu", "torch") for line in WRONG), "import torch.launch", "torch.language"]
    for number, line in enumerate(wrong):
        (tmp_path / f"wrong_{number}.py").write_text(HEADER.replace("torchemu", "torch") + line + "\n")
    _check(checker(tmp_path), wrong)


def test_stubs_leave_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert cli.main(["stubs", "some/where"]) == 0
    (tmp_path / "typings" / "torch").mkdir(parents=True)
    (tmp_path / "typings" / "torch" / "__init__.pyi").write_text("x: int\n")
    assert cli.main(["stubs"]) == 1
    assert "something else" in capsys.readouterr().err
    (tmp_path / "typings" / "torch" / "__init__.pyi").unlink()
    assert cli.main(["stubs"]) == 1
    assert "No such file" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert cli.main(["stubs", "file"]) == 1
    assert "file" in capsys.readouterr().err


@pytest.mark.slow
def test_stubs_are_current(tmp_path: Path) -> None:
    script = ROOT / "python" / "build_backend" / "stubs.py"
    subprocess.run([sys.executable, "-W", "ignore", str(script), str(tmp_path)], check=True)
    made = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert made
    stale = [str(path) for path, text in made.items() if not _is_current(path, text)]
    kept = {p.relative_to(ROOT / "python") for p in (ROOT / "python" / "torchemu-stubs").rglob("*") if p.is_file()}
    assert not stale and kept <= made.keys(), f"run `make stubs`: {stale or sorted(kept - made.keys())}"


def _is_current(path: Path, text: str) -> bool:
    file = ROOT / "python" / path
    return file.exists() and file.read_text() == text
