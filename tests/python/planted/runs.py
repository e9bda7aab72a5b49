"""Runs of programs on the installed PyTorch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def run(folder: Path, text: str, *flags: str) -> tuple[int, str]:
    """Runs a program, on four ranks where flags name no nodes, and returns its exit status and what it says."""
    file = folder / "program.py"
    file.write_text(text)
    ranks = () if "--nnodes" in flags else ("--nproc-per-node", "4")
    command = [sys.executable, "-m", "torchemu", "run", "--torch", "real", *ranks, *flags, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout + done.stderr
