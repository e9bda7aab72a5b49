"""Long work says on a terminal how far it is, and leaves no trace of that there; in pipes it says nothing."""

from __future__ import annotations

import errno
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from launch import written

LONG = """
    import time, torch, torch.distributed as dist
    dist.init_process_group("gloo")
    end = time.monotonic() + (4 if dist.get_rank() else 0)
    while time.monotonic() < end:
        x = torch.ones(4)
        x.sum()
        time.sleep(0.01)
    if dist.get_rank() == 1:
        print("rank 1 was slow")
    if dist.get_rank():
        dist.send(torch.ones(1), 3 - dist.get_rank()) if dist.get_rank() == 1 else dist.recv(torch.ones(1), 1)
"""
QUICK = """
    import torch, torch.distributed as dist
    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(4))
"""
JOBS = {
    "explore": (("run", "--nproc-per-node=2", "--explore=20", "quick.py"), r"█.* \d+/20 schedules, [\d.]+ a second"),
    "exhaustive": (("run", "--nproc-per-node=2", "--exhaustive=3", "quick.py"), r"█.* \d/3 orders"),
    "run": (("run", "--nproc-per-node=3", "long.py"), r"\d+\.\d+ u?s simulated, [2-9] s, 1 of 3 ranks done"),
    "sweep": (("sweep", "broadcast", "-e", "4K", "-g", "2", "--jobs", "1"), r"█.* 3/\d+  broadcast default 2 \S+ \d+"),
    "calibrate": (("calibrate", "h200.csv"), r"calibrating █.* +\d+%"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    written(tmp_path, LONG, "long.py")
    written(tmp_path, QUICK, "quick.py")
    rows = (ROOT / "benches" / "fidelity" / "h200_nccl.csv").read_text().splitlines()
    head = next(i for i, row in enumerate(rows) if not row.startswith("#"))
    some = [row for row in rows[head + 1 :] if "all_reduce" in row][:6]
    (tmp_path / "h200.csv").write_text("\n".join([rows[head], *some, ""]))
    return tmp_path


def on_a_terminal(folder: Path, *arguments: str) -> str:
    """All that a command writes to a terminal of 100 columns."""
    ours, its = pty.openpty()
    environment = {**os.environ, "COLUMNS": "100"}
    command = [sys.executable, "-m", "torchemu", *arguments]
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=its, stderr=its, stdin=subprocess.DEVNULL)
    os.close(its)
    said = b""
    while True:
        try:
            said += (part := os.read(ours, 1 << 16))
        except OSError as error:  # what Linux says when the other end is closed
            assert error.errno == errno.EIO
            break
        if not part:
            break
    os.close(ours)
    assert process.wait() == 0, said.decode()
    return said.decode()


def left(said: str) -> str:
    """Returns what is left on the screen."""
    return "\n".join(re.split(r"\r\x1b\[K", line)[-1] for line in said.replace("\r\n", "\n").split("\n"))


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.slow
def test_progress(job: str, folder: Path) -> None:
    arguments, line = JOBS[job]
    said = on_a_terminal(folder, *arguments)
    assert re.search(line, said), said
    assert all(len(part) < 100 for part in re.split(r"\r\x1b\[K|\r\n", said) if "█" in part or "simulated," in part)
    assert not re.search(line, left(said)), left(said)
    (folder / "sweep.csv").unlink(missing_ok=True)
    command = [sys.executable, "-m", "torchemu", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert not re.search(line, done.stdout + done.stderr) and "\r" not in done.stdout + done.stderr


@pytest.mark.slow
def test_what_ranks_print_has_a_line_of_its_own(folder: Path) -> None:
    said = on_a_terminal(folder, *JOBS["run"][0])
    assert "rank 1 was slow" in left(said).splitlines()
