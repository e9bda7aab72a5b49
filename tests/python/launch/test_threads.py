"""Threads of a rank are as Python's: the same programs print the same there, with threads of the system."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from launch import launch, lines, written

pytestmark = pytest.mark.shows("PyTorch: threads")

PROGRAMS = sorted((Path(__file__).parents[1] / "data" / "threads").glob("*.py"))
WAYS = [
    [],
    ["--virtual-clock"],
    ["--schedule", "random", "--schedule-seed", "1"],
    *(
        pytest.param(["--schedule", *flags], marks=pytest.mark.slow)
        for flags in (["random", "--schedule-seed", "2"], *(["pct", "--schedule-seed", seed] for seed in "12"))
    ),
]


def printed_by_python(*command: str | Path) -> list[str]:
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(way) or "default")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_as_in_python(program: Path, way: list[str]) -> None:
    outcome = launch("--nproc-per-node", "1", *way, program)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.splitlines() == printed_by_python(program)


def test_each_rank_has_threads_of_its_own(tmp_path: Path) -> None:
    """Their numbers, too, begin anew in each."""
    program = written(
        tmp_path,
        """
        import os
        import threading

        seen = []
        for _ in range(int(os.environ["RANK"]) + 1):
            thread = threading.Thread(target=lambda: seen.append(threading.current_thread().name))
            thread.start()
            thread.join()
        print(os.environ["RANK"], seen, threading.active_count())
        """,
    )
    assert lines(launch("--nproc-per-node", "3", program)) == [
        f"{rank} {[f'Thread-{i} (<lambda>)' for i in range(1, rank + 2)]} 1" for rank in range(3)
    ]


def test_sys_exit_waits_for_threads(tmp_path: Path) -> None:
    program = next(p for p in PROGRAMS if p.stem == "ends")
    outcome = launch("--nproc-per-node", "1", program, "leave")
    assert (outcome.status, outcome.out.splitlines()) == (0, printed_by_python(program, "leave"))
