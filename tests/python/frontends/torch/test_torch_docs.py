"""The programs of docs that are for the installed PyTorch run on it."""

import re
import shlex
import subprocess
import sys

from conftest import ROOT
from test_docs import block_of, commands


def torchemu(folder, arguments):
    command = [sys.executable, "-m", "torchemu", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder)
    assert done.returncode == 0, f"{shlex.join(arguments)}: {done.stderr}"
    return done.stdout


def test_training(tmp_path):
    (tmp_path / "train.py").write_text(block_of("training.md", "import os").text)
    run, report = commands(block_of("training.md", "torchemu run"), "torchemu")
    losses = [float(line.split()[-1]) for line in torchemu(tmp_path, run).splitlines()]
    assert len(losses) == 3 and all(1 < loss < 5 for loss in losses)
    assert "overlap" in (said := torchemu(tmp_path, report)) or "exposed" in said


def test_symmetric_memory(tmp_path):
    """Its total is the rank's and its neighbour's numbers; the all-reduce adds up those of all."""
    said = "\nassert total.eq(rank + (rank + 1) % world).all() and t.eq(sum(range(world))).all()\n"
    (tmp_path / "symmetric.py").write_text(block_of("symmetric-memory.md", "import torch").text + said)
    torchemu(tmp_path, *commands(block_of("symmetric-memory.md", "torchemu run"), "torchemu"))


def test_tokens_for_experts(tmp_path):
    (tmp_path / "dispatch.py").write_text(block_of("symmetric-memory.md", "# dispatch.py").text)
    page = (ROOT / "docs" / "symmetric-memory.md").read_text()
    command, *shown = re.search(r"```console\n\$ torchemu (.*?)```", page, re.DOTALL)[1].splitlines()
    assert sorted(torchemu(tmp_path, shlex.split(command)).splitlines()) == sorted(shown)
