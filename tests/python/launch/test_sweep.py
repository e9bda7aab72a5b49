"""The command sweep: all combinations, files, interrupts."""

from __future__ import annotations

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

from torchemu.launch import cli, sweep, sweep_output

SMALL = ("all_reduce", "--topology", "sips2", "-b", "1K", "-e", "16K", "-f", "16", "--jobs", "1")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def table(file: str = "sweep.csv") -> list[dict[str, str]]:
    with Path(file).open(encoding="utf-8") as text:
        return list(csv.DictReader(text))


def test_rows_are_those_of_bandwidth(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sweep", *SMALL, "--algorithm", "ring", "two_shot", "--set", "link.bandwidth=50,100"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("sweep.csv: 8 rows, of which 8 are new\n")
    assert "all_reduce, 2 ranks on sips2, link.bandwidth=50\n  from         1024 bytes on  " in out
    rows = table()
    assert [(r["link.bandwidth"], r["requested"], r["size"]) for r in rows] == [
        (width, name, size) for width in ("50", "100") for name in ("ring", "two_shot") for size in ("1024", "16384")
    ]
    for name in ("ring", "two_shot"):
        measured = ["-b", "1K", "-e", "16K", "-f", "16", "--topology", "sips2", "--algorithm", name, "--json"]
        assert cli.main(["bandwidth", "all_reduce", *measured]) == 0
        want = [row["time_us"] for row in json.loads(capsys.readouterr().out)["rows"]]
        got = [float(r["time_us"]) for r in rows if r["requested"] == name and r["link.bandwidth"] == "100"]
        assert got == pytest.approx(want)
    narrow, wide = (float(rows[i]["time_us"]) for i in (1, 5))
    assert narrow > wide


def test_it_goes_on_after_an_interrupt(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    note, seen = sweep_output.Journal.note, 0

    def stop(self: Any, key: str, row: dict[str, Any]) -> None:
        nonlocal seen
        seen += 1
        if seen == 4:
            raise KeyboardInterrupt
        note(self, key, row)

    with monkeypatch.context() as patch:
        patch.setattr(sweep_output.Journal, "note", stop)
        assert cli.main(["sweep", *SMALL]) == 130
    assert not Path("sweep.csv").exists()
    with Path("sweep.csv.part").open("a") as part:
        part.write('["torn')
    capsys.readouterr()
    assert cli.main(["sweep", *SMALL]) == 0
    total = len(table())
    assert capsys.readouterr().out.startswith(f"sweep.csv: {total} rows, of which {total - 3} are new\n")
    assert not Path("sweep.csv.part").exists()


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["-o", "sweep.txt"], "the name must end in one of .csv, .parquet"),
        (["-o", "no/sweep.csv"], "there is no folder no"),
        (["--set", "link.speed=3"], "--set link.speed: topology 'sips2' has no such key"),
        (["--set", "link"], "want a key of topology files and values"),
        (["--set", "link.bandwidth=fast"], "torchemu: --set: system.sips.link.bandwidth: must be a bandwidth in GB/s"),
        (["-e", "1"], "there are none"),
        (["-f", "1"], "a factor of 1"),
        (["--algorithm", "quick"], 'unknown all_reduce algorithm "quick"'),
        (["--executor", "threads"], "--executor threads: want processes, or dask://"),
    ],
)
def test_mistakes(args: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sweep", *SMALL, *args]) == 1
    assert why in capsys.readouterr().err
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("args", [["-g", "0"], ["-g", "2", "-1"], ["--jobs", "0"], ["--jobs", "-1"]])
def test_numbers_that_are_none(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["sweep", *SMALL, *args])
    assert f"'{args[-1]}' is not a positive number" in capsys.readouterr().err


def test_an_interrupt_does_not_wait_for_what_is_measured() -> None:
    options = argparse.Namespace(executor="processes", jobs=1)
    with pytest.raises(KeyboardInterrupt), sweep._executor(options) as executor:
        executor.submit(int).result()  # the process has started
        measuring = executor.submit(time.sleep, 20)
        while not measuring.running():
            time.sleep(0.01)
        raise KeyboardInterrupt
    with pytest.raises(BrokenProcessPool):
        measuring.result()


KILLED = """
import argparse, os, time
from torchemu.launch import sweep
if __name__ == "__main__":
    with sweep._executor(argparse.Namespace(executor="processes", jobs=1)) as executor:
        print(executor.submit(os.getpid).result(), flush=True)
        time.sleep(60)
"""


@pytest.mark.slow
def test_processes_end_with_a_sweep_that_is_killed() -> None:
    Path("killed.py").write_text(KILLED)
    with subprocess.Popen([sys.executable, "killed.py"], stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        measuring = int(killed.stdout.readline())
        killed.kill()
    for _ in range(1000):
        if not Path(f"/proc/{measuring}").exists():
            return
        time.sleep(0.01)
    os.kill(measuring, signal.SIGKILL)
    pytest.fail("it measures on")


def test_pareto() -> None:
    points = [(1.0, 9.0), (2.0, 5.0), (2.0, 6.0), (3.0, 5.0), (4.0, 1.0)]
    assert sweep_output.pareto(points) == [(1.0, 9.0), (2.0, 5.0), (4.0, 1.0)]
    for p in points:
        beaten = any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)
        assert (p in sweep_output.pareto(points)) != beaten


def test_changes_leave_the_original() -> None:
    tree = {"name": "x", "system": {"sips": {"link": {"bandwidth": 1}}}}
    assert sweep.changed(tree, {"link.bandwidth": 2})["system"]["sips"]["link"]["bandwidth"] == 2
    assert tree["system"]["sips"]["link"]["bandwidth"] == 1


def test_parquet_and_plot() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("matplotlib")
    plotted = ["--plot", "sweep.png", "-o", "sweep.parquet", "--set", "link.bandwidth=50,100"]
    assert cli.main(["sweep", *SMALL, "--algorithm", "ring", *plotted]) == 0
    assert len(parquet.read_table("sweep.parquet")) == 4
    assert Path("sweep.png").stat().st_size > 1000


def test_dask(capsys: pytest.CaptureFixture[str]) -> None:
    distributed = pytest.importorskip("distributed")
    if not hasattr(distributed, "LocalCluster"):
        pytest.skip("distributed is not Dask's")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        address = cluster.scheduler_address.removeprefix("tcp://")
        assert cli.main(["sweep", *SMALL, "--algorithm", "ring", "--executor", f"dask://{address}"]) == 0
    assert len(table()) == 2
