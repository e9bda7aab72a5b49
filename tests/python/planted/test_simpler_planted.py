"""Kernels in C++ on simpler's chips: the right ones are clean, and each planted defect is reported by its lines."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled_cases import KERNELS, callable_of, needs_compiler
from conftest import OpenWorld
from planted import marks
from planted.simpler_kernels import BEGIN, END, PROGRAMS
from simpler_cases import IN, INOUT, OUT, called, domain, run, tensor, window, working

import torchemu as torch
from torchemu.errors import RaceError
from torchemu.runtime import Strictness

pytestmark = needs_compiler

CHIPS = 4


def play(folder: Path, text: str) -> None:
    """Runs a kernel on all chips."""
    shutil.copy(KERNELS / "aiv" / "domain.hpp", folder)
    file = folder / "program.cpp"
    file.write_text(text)
    x, y = [tensor(np.arange(64)) for _ in range(CHIPS)], [torch.zeros(256) for _ in range(CHIPS)]
    with working(CHIPS) as worker:
        cid = worker.register(callable_of(file))

        def build(orch: Any) -> None:
            for i, seen in enumerate(domain(orch, range(CHIPS), 4 * 1024 + 64)):
                args = called((x[i], IN), (y[i], OUT), (window(seen), INOUT), CHIPS, seen.device_ctx)
                orch.submit_next_level(cid, args, worker=i)

        run(worker, build)


@pytest.mark.parametrize("reorder", [None, 5])
@pytest.mark.parametrize("name", PROGRAMS)
def test_right_kernels_are_clean(name: str, reorder: int | None, tmp_path: Path, open_world: OpenWorld) -> None:
    open_world().strictness = Strictness(check=True, reorder=reorder)
    play(tmp_path, marks.planted(BEGIN + PROGRAMS[name] + END, None, ";"))


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
