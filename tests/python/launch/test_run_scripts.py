"""The programs of tests/scripts print on the NumPy front end what they print on PyTorch, whatever the order in which
ranks run; those that need more than it has are run by frontends/torch/test_torch_scripts.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch import launch
from recorded_scripts import ON_NUMPY, ONLY_REAL, RECORDED, SCRIPTS, started

pytestmark = pytest.mark.shows("programs: scripts for torchrun, which print what they print on processes of PyTorch")

SCHEDULES = [
    ["--schedule", "fifo"],
    *(
        pytest.param(["--schedule", *flags], marks=pytest.mark.slow)
        for flags in (["random", "--schedule-seed", "7"], ["pct"])
    ),
]
EXPLORED = [("random" if seed % 2 else "pct", seed) for seed in range(1, 7)]


def prints_the_same(recorded: Path, *schedule: str) -> None:
    """Runs a program and compares what it prints."""
    outcome = launch(*schedule, *started(recorded))
    assert (outcome.status, outcome.err) == (0, ""), schedule
    assert outcome.out == recorded.read_text(), schedule


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda flags: flags[1])
@pytest.mark.parametrize("recorded", ON_NUMPY, ids=lambda file: file.stem)
def test_prints_what_it_prints_on_pytorch(recorded: Path, schedule: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SCRIPTS)
    prints_the_same(recorded, *schedule)


@pytest.mark.slow
@pytest.mark.parametrize("recorded", ON_NUMPY, ids=lambda file: file.stem)
def test_no_schedule_of_many_changes_it(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SCRIPTS)
    for policy, seed in EXPLORED:
        prints_the_same(recorded, "--virtual-clock", "--schedule", policy, "--schedule-seed", str(seed))


def on_two_nodes(recorded: Path) -> list[str]:
    """The arguments that start a program with half of its ranks on each of two nodes; none where that cannot be."""
    flag, ranks, *rest = started(recorded)
    if flag != "--nproc-per-node" or int(ranks) % 2 or recorded.stem == "environment":
        return []
    return ["--nnodes", "2", flag, str(int(ranks) // 2), *rest]


@pytest.mark.parametrize("recorded", [file for file in ON_NUMPY if on_two_nodes(file)], ids=lambda file: file.stem)
def test_nodes_change_nothing(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But what the environment says of them."""
    monkeypatch.chdir(SCRIPTS)
    outcome = launch(*on_two_nodes(recorded))
    assert (outcome.status, outcome.err, outcome.out) == (0, "", recorded.read_text())


def test_every_script_is_recorded() -> None:
    programs = {p.stem for p in SCRIPTS.glob("*.py") if p.read_text().startswith("# ")}
    programs |= {p.parent.name for p in SCRIPTS.glob("*/__main__.py")}
    assert programs == {p.stem for p in RECORDED} >= ONLY_REAL
