"""Tests of what a batch of messages costs the host that issues it."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch import launch, lines

PROGRAM = Path(__file__).parent / "batch_cases.py"


@pytest.mark.parametrize(("topology", "launches"), [("h200_8", 1), ("sips8", 6)])
def test_a_batch_is_one_launch_of_a_library(topology: str, launches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    spent = {}
    for count in (1, 3):
        monkeypatch.setenv("COUNT", str(count))
        done = launch("--nproc-per-node", "2", "--virtual-clock", "--torch", "numpy", "--topology", topology, PROGRAM)
        spent[count] = float(lines(done)[0])
    assert spent[3] == pytest.approx(spent[1] * (1 if launches == 1 else 3), abs=0.02)
