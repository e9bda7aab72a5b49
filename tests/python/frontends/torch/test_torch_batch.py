"""Tests of what a batch of messages of the installed PyTorch costs the host that issues it."""

from __future__ import annotations

import pytest
from conftest import ROOT
from launch import launch, lines

pytest.importorskip("torch")

PROGRAM = ROOT / "tests" / "python" / "c10d" / "batch_cases.py"


@pytest.mark.parametrize(("topology", "factor"), [("h200_8", 1), ("sips8", 3)])
def test_a_batch_is_one_launch_of_a_library(topology: str, factor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    spent = {}
    for count in (1, 3):
        monkeypatch.setenv("COUNT", str(count))
        done = launch("--nproc-per-node", "2", "--virtual-clock", "--torch", "real", "--topology", topology, PROGRAM)
        spent[count] = float(lines(done)[0])
    assert spent[3] == pytest.approx(factor * spent[1], abs=0.02)
