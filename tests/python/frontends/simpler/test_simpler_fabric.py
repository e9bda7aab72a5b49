"""The chips of a Worker are on the run's fabric: they are in its traces, and its faults are theirs."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, OpenWorld
from launch import launch
from simpler_cases import ADD, IN, OUT, called, run, tensor, working, written

import torchemu as torch
from torchemu import World
from torchemu.errors import DeadlockError
from torchemu.launch import cli
from torchemu.runtime.waiting import host_time

ALL_REDUCE = str(ROOT / "benches" / "simpler" / "allreduce.py")
SLOW = "faults:\n  - {slow_link: [0, 1], factor: 1000}\n"
DROPPED = "faults:\n  - {drop_link: [1, 0]}\n"


def started(*arguments: str | Path, chips: int = 4) -> tuple[int, str, str]:
    """A ring's all-reduce on some chips: exit status, and what it prints."""
    outcome = launch(*arguments, ALL_REDUCE, "-p", "a2a3sim", "-d", f"0-{chips - 1}", "-m", "ring")
    return outcome.status, outcome.out, outcome.err


def microseconds(printed: str) -> float:
    return float(printed.split(" chips: ")[1].split()[0])


def test_tasks_are_in_traces(tmp_path: Path) -> None:
    status, out, err = started("--trace", tmp_path)
    assert status == 0
    assert all(" was not compiled" in line for line in err.splitlines())
    for rank in range(4):
        with gzip.open(tmp_path / f"rank{rank}.json.gz") as file:
            events = json.load(file)["traceEvents"]
        (task,) = (e for e in events if e["name"] == f"allreduce_ring_kernel #{rank + 1}" and e["cat"] == "kernel")
        assert 0 < task["dur"] <= microseconds(out)


def test_links_are_in_traces(tmp_path: Path) -> None:
    assert started("--trace", tmp_path)[0] == 0
    report = launch_report(tmp_path)
    assert "n0.s0.io>n0.s1.io" in report and "4 ranks on default" in report


def launch_report(folder: Path) -> str:
    """Returns what torchemu report prints of a folder."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert cli.main(["report", str(folder)]) == 0
    return out.getvalue()


def test_a_slow_link_slows_them(tmp_path: Path) -> None:
    faults = tmp_path / "faults.yaml"
    faults.write_text(SLOW)
    (status, slow, _), (_, plain, _) = started("--faults", faults), started()
    assert status == 0 and "all chips matched" in slow
    assert microseconds(slow) > 1.1 * microseconds(plain)


def test_a_dropped_link_is_the_cause(tmp_path: Path) -> None:
    faults = tmp_path / "faults.yaml"
    faults.write_text(DROPPED)
    status, _, err = started("--faults", faults)
    assert status == 1
    assert "waits for the word" in err and "likely cause: the link " in err and " was dropped at 0s" in err


def test_a_preset_that_cannot_grow_is_left_alone(tmp_path: Path) -> None:
    with pytest.warns(
        UserWarning, match="cannot get more, for .* is being recorded.*choose a --topology with at least 8"
    ):
        status, out, _ = started("--trace", tmp_path, chips=8)
    assert status == 0 and "all chips matched" in out


def add(worker: Any, n: int) -> tuple[Any, Any]:
    """Two runs of a sum on chip n; the results, and the time of each."""
    a, b, c = (tensor(np.arange(8) + i) for i in range(3))
    timing = run(worker, lambda orch: orch.submit_next_level(0, called((a, IN), (b, IN), (c, OUT)), worker=n))
    return c.numpy().copy(), timing


def test_a_preset_grows(tmp_path: Path, open_world: OpenWorld) -> None:
    world: World = open_world()
    assert world.sips == 4
    with working(7) as worker:
        worker.register(written(tmp_path, ADD))
        got, _ = add(worker, 6)
    np.testing.assert_array_equal(got, 2 * np.arange(8) + 1)
    assert world.sips == 7


def test_the_hosts_time_goes_on_with_theirs(tmp_path: Path, open_world: OpenWorld) -> None:
    open_world()
    x = torch.ones(256, 256)
    x = x @ x  # what the device is at before
    with working(2) as worker:
        worker.register(written(tmp_path, ADD))
        times = []
        for _ in range(3):
            before = host_time()
            _, timing = add(worker, 1)
            times.append((host_time() - before, timing.host_wall_us))
    for passed, wall in times[1:]:
        assert passed == round(wall * 1e6) > 0
    assert times[0][0] > times[1][0], "the first waits for the matrix product"
    assert times[1][1] == times[2][1]


def test_nothing_of_a_failed_run_comes_later(tmp_path: Path, open_world: OpenWorld) -> None:
    """A kernel fails while its store is under way: the memory is not its any more when that would land."""
    open_world()
    failing = ADD.rstrip() + "\n        1 / 0\n"
    a, b, c = (tensor(np.arange(8) + i) for i in range(3))
    with working(1) as worker:
        cid = worker.register(written(tmp_path, failing))
        with pytest.raises(ZeroDivisionError):
            run(worker, lambda orch: orch.submit_next_level(cid, called((a, IN), (b, IN), (c, OUT)), worker=0))
    kept = c.numpy().copy()
    y = torch.ones(64, 64)
    (y @ y).tolist()
    torch.cuda.synchronize()
    np.testing.assert_array_equal(c.numpy(), kept)
    with working(1) as worker:
        worker.register(written(tmp_path, ADD, "other_kernel"))
        got, _ = add(worker, 0)
    np.testing.assert_array_equal(got, 2 * np.arange(8) + 1)


def test_a_wait_for_ever_ends_with_watches_set(tmp_path: Path, open_world: OpenWorld) -> None:
    """A fault far in the future is no reason to wait for it."""
    open_world().add_faults([{"slow_link": [0, 1], "factor": 2, "from": 1e12}])
    waits = """
        from torchemu.pto import *

        def kernel_entry(args):
            TWAIT(Signal(args[0].ptr().cast(int32)), 1, WaitCmp.GE)
    """
    with working(2) as worker:
        worker.register(written(tmp_path, waits))
        with pytest.raises(DeadlockError, match=r"deadlock at simulated time 0s"):
            add(worker, 0)
