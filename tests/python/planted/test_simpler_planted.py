"""Kernels on simpler's chips: the right ones are clean, and each planted defect is reported by its lines."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled_cases import KERNELS, callable_of, needs_compiler
from conftest import OpenWorld
from planted import marks, pto_kernels
from planted.simpler_kernels import BEGIN, END, PROGRAMS
from simpler_cases import IN, INOUT, OUT, called, compiled, domain, run, tensor, window, working

import torchemu as torch
from torchemu.errors import RaceError
from torchemu.runtime import Strictness

CHIPS = 4


def play(folder: Path, text: str) -> None:
    """Runs a kernel in C++ on all chips."""
    shutil.copy(KERNELS / "aiv" / "domain.hpp", folder)
    file = folder / "program.cpp"
    file.write_text(text)
    launched(lambda: callable_of(file), 1)


def play_python(folder: Path, text: str, times: int) -> list[np.ndarray]:
    """Runs a kernel in Python on all chips, so many times one after another, and returns their outputs."""
    (folder / "program.py").write_text(text)
    return launched(lambda: compiled(folder / "program.cpp"), times)


def launched(made: Callable[[], Any], times: int) -> list[np.ndarray]:
    """Runs a callable on all chips, and returns their outputs."""
    x, y = [tensor(np.arange(64) + 100 * i) for i in range(CHIPS)], [torch.zeros(256) for _ in range(CHIPS)]
    with working(CHIPS) as worker:
        cid = worker.register(made())

        def build(orch: Any) -> None:
            for i, seen in enumerate(domain(orch, range(CHIPS), 4 * 1024 + 64)):
                for _ in range(times):
                    args = called((x[i], IN), (y[i], OUT), (window(seen), INOUT), CHIPS, seen.device_ctx)
                    orch.submit_next_level(cid, args, worker=i)

        run(worker, build)
    return [t.numpy() for t in y]


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("reorder", [None, 5])
@pytest.mark.parametrize("name", PROGRAMS)
def test_right_kernels_are_clean(name: str, reorder: int | None, tmp_path: Path, open_world: OpenWorld) -> None:
    open_world().strictness = Strictness(check=True, reorder=reorder)
    play(tmp_path, marks.planted(BEGIN + PROGRAMS[name] + END, None, ";"))


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize(
    ("name", "defect"), [(name, d) for name, text in PROGRAMS.items() for d in marks.defects(text)]
)
def test_a_planted_defect_is_reported_by_its_lines(
    name: str, defect: str, tmp_path: Path, open_world: OpenWorld
) -> None:
    open_world().strictness = Strictness(check=True)
    text = BEGIN + PROGRAMS[name] + END
    with pytest.raises(RaceError) as caught:
        play(tmp_path, marks.planted(text, defect, ";"))
    found, wanted = marks.reports(str(caught.value), "cpp"), marks.named(text, defect)
    assert found and all(lines <= wanted for lines in found), (wanted, found, str(caught.value))


TIMES = {"launched twice": 2}


@pytest.mark.parametrize("reorder", [None, 5])
@pytest.mark.parametrize("name", pto_kernels.PROGRAMS)
def test_right_kernels_in_python_are_clean(
    name: str, reorder: int | None, tmp_path: Path, open_world: OpenWorld
) -> None:
    open_world().strictness = Strictness(check=True, reorder=reorder)
    text = marks.planted(pto_kernels.BEGIN + pto_kernels.PROGRAMS[name])
    for rank, got in enumerate(play_python(tmp_path, text, TIMES.get(name, 1))):
        wanted = pto_kernels.WANTED[name](rank)
        assert np.array_equal(got[: len(wanted)], wanted), (rank, got)


@pytest.mark.parametrize(
    ("name", "defect"), [(name, d) for name, text in pto_kernels.PROGRAMS.items() for d in marks.defects(text)]
)
def test_a_defect_of_a_kernel_in_python_is_reported(
    name: str, defect: str, tmp_path: Path, open_world: OpenWorld
) -> None:
    open_world().strictness = Strictness(check=True)
    text = pto_kernels.BEGIN + pto_kernels.PROGRAMS[name]
    with pytest.raises(RaceError) as caught:
        play_python(tmp_path, marks.planted(text, defect), TIMES.get(name, 1))
    found, wanted = marks.reports(str(caught.value)), marks.named(text, defect)
    assert found and found[0] and all(lines <= wanted for lines in found), (wanted, found, str(caught.value))
