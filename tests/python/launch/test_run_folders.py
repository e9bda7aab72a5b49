"""Refusals of torchemu run before it begins, and programs that are folders or archives."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from launch import launch, lines, written

MAIN = """
import sys
import torch.distributed as dist
import helper
dist.init_process_group("gloo")
i = 0
while i < 3: i += 1
print(helper.told(), sys.argv, __file__, __name__, repr(__package__), sys.path[0])
"""
HELPER = "calls = []\ndef told():\n    calls.append(1)\n    return len(calls)\n"


def archived(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "app.zip", "w") as archive:
        for name in ("__main__.py", "helper.py"):
            archive.write(folder / "app" / name, name)
    return folder / "app.zip"


@pytest.mark.parametrize("is_archive", [False, True])
def test_a_folder_is_run_by_its_main_module(tmp_path: Path, is_archive: bool) -> None:
    written(tmp_path, MAIN, "app/__main__.py")
    written(tmp_path, HELPER, "app/helper.py")
    app = archived(tmp_path) if is_archive else tmp_path / "app"
    told = f"1 {[str(app), 'x', '--y']} {app}/__main__.py __main__ '' {app}"
    assert lines(launch("--nproc-per-node", "2", app, "x", "--y")) == [told] * 2


def test_a_folder_without_a_main_module(tmp_path: Path) -> None:
    outcome = launch("--nproc-per-node", "2", tmp_path)
    assert (outcome.status, outcome.err) == (1, f"torchemu: can't find '__main__' module in {str(tmp_path)!r}\n")


def test_a_working_directory_that_is_gone(tmp_path: Path) -> None:
    file, before = written(tmp_path, "print(1)"), os.getcwd()
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    try:
        (tmp_path / "gone").rmdir()
        outcome = launch("--nproc-per-node", "2", file)
    finally:
        os.chdir(before)
    assert (outcome.status, outcome.err) == (1, "torchemu: the working directory is gone: change to another one\n")


def test_parts_of_packages_cannot_be_isolated(tmp_path: Path) -> None:
    outcome = launch("--nproc-per-node", "1", "--isolate", "numpy.linalg", written(tmp_path, "print(1)"))
    said = "torchemu: --isolate numpy.linalg: packages are isolated whole: give numpy\n"
    assert (outcome.status, outcome.err) == (1, said)


def test_packages_beside_the_program_and_of_front_ends_may_be(tmp_path: Path) -> None:
    written(tmp_path, "", "beside.py")
    flags = [word for name in ("beside", "numpy", "megatron") for word in ("--isolate", name)]
    assert lines(launch("--nproc-per-node", "2", *flags, written(tmp_path, "print(1)"))) == ["1", "1"]


@pytest.mark.parametrize("fault", ["kill: 3, at: 1e3", "slow_rank: 3, factor: 2"])
@pytest.mark.parametrize(("ranks", "has"), [(2, "ranks 0 to 1"), (1, "rank 0 only")])
def test_faults_of_ranks_that_a_run_has_not(tmp_path: Path, fault: str, ranks: int, has: str) -> None:
    faults = written(tmp_path, f"faults:\n  - {{{fault}}}\n", "faults.yaml")
    outcome = launch("--nproc-per-node", str(ranks), "--faults", faults, written(tmp_path, "print(1)"))
    assert outcome.status == 1 and outcome.out == ""
    assert outcome.err.endswith(f"faults[0].{fault.partition(':')[0]}: there is no rank 3; the run has {has}\n")


def test_faults_of_ranks_that_a_program_makes_itself(tmp_path: Path) -> None:
    """Nobody knows before how many there will be."""
    text = """
    import torch.multiprocessing as mp
    def main(rank): print(rank)
    if __name__ == "__main__": mp.spawn(main, nprocs=4)
    """
    faults = written(tmp_path, "faults:\n  - {slow_rank: 3, factor: 2}\n", "faults.yaml")
    assert lines(launch("--faults", faults, written(tmp_path, text))) == ["0", "1", "2", "3"]
