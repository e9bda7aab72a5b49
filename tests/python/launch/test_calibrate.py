"""The commands calibrate, topology and algorithms."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

HEADER = "collective,world,size,us\n"


def torchemu(*args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "torchemu", *map(str, args)], capture_output=True, text=True, timeout=300
    )


@pytest.fixture
def measurements(tmp_path: Path) -> Path:
    """Times of rings with 10 µs and 100 GB/s."""
    file = tmp_path / "two.csv"
    rows = [f"all_reduce,2,{1 << k},{10 + (1 << k) / 1e5}" for k in range(10, 30, 2)]
    file.write_text(HEADER + "\n".join(rows) + "\n")
    return file


def test_calibrate_writes_a_topology_that_predicts(measurements: Path, tmp_path: Path) -> None:
    out = tmp_path / "machine.yaml"
    done = torchemu("calibrate", measurements, "-o", out)
    assert done.returncode == 0, done.stderr
    assert "10 measurements" in done.stdout
    assert "There is one world size only, 2: nothing says how well others are predicted." in done.stdout
    assert "transport.sip.skew" in done.stdout.partition("The data do not determine these")[2]
    text = out.read_text()
    assert "name: machine" in text
    assert "# assumed: the data do not determine it" in text
    assert torchemu("topology", "validate", out).stdout == f"{out}: nothing is wrong\n"
    program = tmp_path / "program.py"
    program.write_text(
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group()\n"
        "x = torch.zeros(1 << 20, device='cuda')\n"
        "begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)\n"
        "begin.record(); dist.all_reduce(x); end.record(); torch.cuda.synchronize()\n"
        "if dist.get_rank() == 0: print(begin.elapsed_time(end) * 1000)\n"
    )
    ran = torchemu("run", "--nproc-per-node", "2", "--topology", out, program)
    assert float(ran.stdout) == pytest.approx(10 + (4 << 20) / 1e5, rel=0.15), ran.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEADER + "all_reduce,2,8,slow\n", ':2:16: us must be a time in µs above 0, not "slow"'),
        (HEADER, ":1:1: there are no measurements below the header"),
        ("collective,world,size\n", ":1:1: the column us is missing"),
        ("\x00\x01,", ':1:1: "\\x00\\x01" is no column of measurements'),
        (HEADER + "all_reduce,70,8,1\n", "a measurement has 70 ranks; topology base has 64 SIPs"),
    ],
)
def test_wrong_measurements_are_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(text)
    done = torchemu("calibrate", file)
    assert done.returncode == 1
    assert done.stderr.startswith("torchemu: ")
    assert said in done.stderr
    assert done.stdout == ""


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    done = torchemu("calibrate", tmp_path / "none.csv")
    assert done.returncode == 1
    assert "none.csv" in done.stderr
    assert "Traceback" not in done.stderr


def test_topology_shows_a_picture(tmp_path: Path) -> None:
    shown = torchemu("topology", "show", "nodes2x8")
    assert shown.returncode == 0
    assert "[s15]" in shown.stdout
    assert "a NIC each" in shown.stdout
    file = tmp_path / "picture.svg"
    assert torchemu("topology", "show", "sips8", "--svg", file).returncode == 0
    names = [e.text for e in ElementTree.parse(file).iter() if e.tag.endswith("text")]
    assert {f"s{i}" for i in range(8)} <= set(names)


def test_validate_names_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text("system: {sips: {count: 4}}\ntransport:\n  sip: {channels: 0}\n")
    done = torchemu("topology", "validate", file)
    assert done.returncode == 1
    assert f"{file}:3: transport.sip.channels: must be a whole number" in done.stderr


def test_algorithms_are_listed() -> None:
    listed = dict(line.split(None, 1) for line in torchemu("algorithms").stdout.splitlines())
    assert listed["broadcast"].split(", ")[:3] == ["binomial", "chain", "direct"]
    assert "ring" in listed["all_reduce"].split(", ")
