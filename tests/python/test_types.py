"""Type checkers know the names of torchemu: those that are there, and that others are not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

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


def mypy(folder: Path) -> list[str]:
    """The errors that mypy finds in the files of a folder."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file=", *_files(folder)]
    return _errors(subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout)


def pyright(folder: Path) -> list[str]:
    """The errors that pyright finds, where it is installed."""
    found = shutil.which("basedpyright") or shutil.which("pyright")
    if found is None:
        pytest.skip("pyright is not installed")
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    command = [found, "--pythonpath", sys.executable, "--level", "error"]
    return _errors(subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout)


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.py"))


def _errors(output: str) -> list[str]:
    return [line for line in output.splitlines() if "error" in line and ".py:" in line]


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_type_checkers_know_the_names(checker: object, tmp_path: Path) -> None:
    assert callable(checker)
    (tmp_path / "right.py").write_text(RIGHT)
    for number, line in enumerate(WRONG):
        (tmp_path / f"wrong_{number}.py").write_text(HEADER + line + "\n")
    errors = checker(tmp_path)
    assert not [e for e in errors if "right.py" in e]
    for number, line in enumerate(WRONG):
        assert any(f"wrong_{number}.py:4" in e for e in errors), f"no error in {line!r}: {errors}"


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
