"""Runs scripts under torchemu: many in one run where all should end well, each on its own where one is to fail."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIMEOUT = 300

Outcome = list[list[list[Any]]] | str
"""For each rank what it kept; or what the run said as it failed."""


@dataclass(frozen=True)
class Emulation:
    """A way to run scripts.

    Attributes:
        torch: the front end: numpy or real.
        flags: further flags of torchemu run.
    """

    torch: str
    flags: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join(["torchemu run --torch", self.torch, *self.flags])

    def outcomes(self, scripts: Sequence[str], size: int) -> list[Outcome]:
        """Returns how each of some scripts has ended. Those behind one that failed run in another process."""
        outcomes: list[Outcome] = []
        while len(outcomes) < len(scripts):
            outcomes += self._batch(scripts[len(outcomes) :], size)
        return outcomes

    def _batch(self, scripts: Sequence[str], size: int) -> list[Outcome]:
        """Returns the outcomes up to the first script that failed."""
        with tempfile.TemporaryDirectory() as folder:
            for i, text in enumerate(scripts):
                Path(folder, f"{i:04}.py").write_text(text)
            status, said = self.run([str(Path(__file__).with_name("batch.py")), folder], size)
            outcomes: list[Outcome] = []
            for i in range(len(scripts)):
                files = [Path(folder, f"{i:04}.{rank}") for rank in range(size)]
                if not all(file.exists() for file in files):
                    return [*outcomes, said or f"no results, and status {status}"]
                outcomes.append([json.loads(file.read_text()) for file in files])
        if status or "arning" in said:
            outcomes[-1] = said  # of which one it is, a run of each shows
            return outcomes if len(scripts) == 1 else [self._batch([text], size)[0] for text in scripts]
        return outcomes

    def run(self, command: Sequence[str], size: int) -> tuple[int, str]:
        """Runs a script; returns the status, and what came out."""
        line = [sys.executable, "-m", "torchemu", "run", "--torch", self.torch, *self.flags]
        try:
            done = subprocess.run(
                [*line, "--nproc-per-node", str(size), *command], capture_output=True, text=True, timeout=TIMEOUT
            )
        except subprocess.TimeoutExpired:
            return 124, f"does not end within {TIMEOUT} s"
        return done.returncode, done.stdout + done.stderr
