"""A kind of collective that there is not: written into copies of few files, it runs, and has its names everywhere."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from conftest import ROOT

pytestmark = pytest.mark.slow

MOST_FILES = 6
RANKS = 4

PROGRAM = """
import torch
import torch.distributed as dist
from torch.distributed import GroupMember
from torchemu.c10d import hooks

dist.init_process_group("nccl")
told = []
hooks.attach(GroupMember.WORLD, "toy", hooks.calls_before(told.append))
given = torch.full((5,), float(dist.get_rank() + 1), device="cuda")
work = dist.star_reduce(given, 1, async_op=True)
work.wait()
print(given.tolist(), told[0].name)
dist.star_reduce(given, dst=2, op="max")
print(given.sum().item())
"""


def edits() -> list[tuple[str, str, str]]:
    """The edits of tests/toy_kind.txt: a file, the end of a line, and what is behind it; or a file of its own."""
    found = []
    for part in (ROOT / "tests" / "toy_kind.txt").read_text().split("\n== ")[1:]:
        head, _, text = part.partition("\n")
        file, _, behind = head.partition(": ")
        found.append((file, behind, text.removesuffix("\n") + "\n"))
    return found


def edited(made: list[tuple[str, str, str]]) -> dict[str, str]:
    """The texts of the files, by their names, after all edits."""
    texts: dict[str, str] = {}
    for file, behind, text in made:
        if behind:
            before, line, after = texts.get(file, (ROOT / file).read_text()).partition(behind + "\n")
            assert line, f"{file} has no line that ends with {behind!r}"
            texts[file] = before + line + text + after
        else:
            texts[file] = text
    return texts


def core_with(folder: Path, texts: dict[str, str]) -> Path:
    """Compiles the core with other texts of some Go files, and returns the library."""
    generated = ROOT / "build" / f"core-{sys.implementation.cache_tag}" / "gen"
    if not generated.is_dir():
        pytest.skip("the core was not compiled here")
    replaced = {}
    for file, text in texts.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
        replaced[str(ROOT / file)] = str(folder / file)
    (folder / "overlay.json").write_text(json.dumps({"Replace": replaced}))
    library = folder / f"_pybind{sysconfig.get_config_var('EXT_SUFFIX')}"
    command = ["go", "build", "-overlay", str(folder / "overlay.json"), "-trimpath", "-buildvcs=false"]
    built = subprocess.run(
        [*command, "-buildmode=c-shared", "-ldflags=-s -w", "-o", str(library), "."],
        cwd=generated,
        env={**os.environ, "CGO_ENABLED": "1", "GOWORK": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return library


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with torchemu that has the toy, in the core and in Python."""
    folder, texts = tmp_path_factory.mktemp("toy"), edited(edits())
    library = core_with(folder, {file: text for file, text in texts.items() if file.endswith(".go")})
    made = folder / "python" / "torchemu"
    shutil.copytree(ROOT / "python" / "torchemu", made, copy_function=os.symlink)
    for file, text in texts.items():
        if file.endswith(".py"):
            (folder / file).unlink()
            (folder / file).write_text(text)
    (made / "_core" / library.name).unlink()
    shutil.move(library, made / "_core" / library.name)
    return folder / "python"


def python(package: Path, *command: str | Path) -> str:
    """Runs Python with the package, and returns what it printed."""
    ran = subprocess.run(
        [sys.executable, *map(str, command)],
        env={**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_few_files() -> None:
    assert 0 < len({file for file, _, _ in edits()}) <= MOST_FILES


def test_a_program_calls_it(package: Path, tmp_path: Path) -> None:
    """It has bits, hooks hear of an operation that PyTorch has no number for, and traces and reports show its name."""
    program, traces, page = tmp_path / "program.py", tmp_path / "traces", tmp_path / "page.html"
    program.write_text(PROGRAM)
    run = ["-m", "torchemu", "run", "--nproc-per-node", str(RANKS), "--trace", traces]
    out = python(package, *run, program)
    total = float(sum(range(1, RANKS + 1)))
    assert out.count(f"{[total] * 5} HookOpName.UNKNOWN") == RANKS, out
    assert out.count(f"{5 * total}\n") == RANKS, out
    written = "".join(gzip.decompress(file.read_bytes()).decode() for file in traces.glob("*.json.gz"))
    for name in ("c10d::star_", "ncclKernel_Star_Sum", "ncclKernel_Star_Max"):
        assert written.count(name) >= RANKS, name
    python(package, "-m", "torchemu", "report", traces, "--html", page)
    shown = page.read_text()
    assert ".star-reduce { fill: var(--star-reduce)" in shown
    assert 'class="star-reduce"' in shown
    colours = [line.partition(": ")[2] for line in shown.splitlines() if line.startswith("  --star-reduce: ")]
    assert len(colours) == 1
    assert shown.count(colours[0]) == 1


@pytest.mark.slow
def test_its_bandwidth_is_measured(package: Path) -> None:
    """The bench calls it, checks what it makes, and knows that the bus carries all of it twice."""
    bench = ROOT / "benches" / "ccl_bandwidth.py"
    out = python(package, bench, "star_reduce", "all_reduce", "-b", "4K", "-e", "4K", "-g", str(RANKS), "-r", "1")
    rows = [line.split() for line in out.splitlines() if line.strip() and not line.startswith("#")]
    assert [(row[3], row[4], row[8], row[12]) for row in rows] == [("sum", "1", "0", "0"), ("sum", "-1", "0", "0")]
    for row in rows:
        assert float(row[7]) == pytest.approx(float(row[6]) * 2 * (RANKS - 1) / RANKS, abs=0.02)  # both are rounded


def test_it_is_listed(package: Path) -> None:
    assert "star_reduce     direct\n" in python(package, "-m", "torchemu", "algorithms")
