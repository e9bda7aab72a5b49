"""The command bandwidth: nccl-tests' flags and columns, without data and programs."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torchemu as torch
from torchemu.launch import cli

ROOT = Path(__file__).resolve().parents[3]


def measured(capsys: pytest.CaptureFixture[str], *args: str) -> list[dict[str, Any]]:
    """The rows of the command's JSON."""
    assert cli.main(["bandwidth", *args, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["rows"]


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    rows = measured(capsys, "all_reduce", "--topology", "sips8", "-b", "1K", "-e", "1M", "-f", "32", "-d", "half")
    assert [row["size"] for row in rows] == [1 << 10, 1 << 15, 1 << 20]
    for row in rows:
        assert row["count"] == row["size"] // 2
        assert row["algbw"] == pytest.approx(row["size"] / row["time_us"] / 1e3)
        assert row["busbw"] == pytest.approx(row["algbw"] * 2 * 7 / 8)
    assert [row["time_us"] for row in rows] == sorted(row["time_us"] for row in rows)


def test_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bandwidth", "broadcast", "-g", "3", "-b", "8", "-e", "8", "--algorithm", "chain", "-r", "2"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("# nThread 1 nGpus 3 minBytes 8 maxBytes 8 step: 2(factor)")
    line = next(text.split() for text in out if not text.startswith("#"))
    assert line[:5] == ["8", "2", "float", "none", "2"]
    assert line[-1] == "chain"
    assert out[-2].startswith("# Avg bus bandwidth    : ")


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
@pytest.mark.parametrize("world", [2, 3, 4])
def test_times_of_a_transport_are_measured_ones(
    capsys: pytest.CaptureFixture[str], collective: str, world: int
) -> None:
    """Each is the mean of calls back to back, in which roots and leaves are ahead of the others, as it was measured."""
    with (ROOT / "benches/fidelity/h200_nccl.csv").open() as file:
        known = [r for r in csv.DictReader(file) if (r["variant"], r["world"]) == ("default", str(world))]
    want = {
        int(r["size"]): float(r["us"]) for r in known if r["collective"] == collective and int(r["size"]) >= 1 << 20
    }
    sizes = ("-b", str(min(want)), "-e", str(max(want)))
    rows = measured(capsys, collective, "--topology", "h200_8", "-g", str(world), *sizes)
    assert {row["size"] for row in rows} == set(want)
    for row in rows:
        assert row["iters"] == 20
        assert row["time_us"] == pytest.approx(want[row["size"]], rel=0.15), row
    assert rows == measured(capsys, collective, "--topology", "h200_8", "-g", str(world), *sizes, "-n", "20")


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["-g", "0"], "'0' is not a positive number"),
        (["-g", "-3"], "'-3' is not a positive number"),
        (["-g", str(1 << 63)], "'9223372036854775808' is not a positive number of at most 9223372036854775807"),
        (["-n", "0"], "'0' is not a positive number"),
        (
            ["-b", "99999999999999999999"],
            "'99999999999999999999' is more than the largest size, 9223372036854775807 bytes",
        ),
    ],
)
def test_numbers_out_of_range(args: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["bandwidth", "all_reduce", *args])
    assert why in capsys.readouterr().err


def test_one_call_without_a_transport(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = measured(capsys, "broadcast", "--topology", "sips8", "-b", "1M", "-e", "1M")
    assert row["iters"] == 1
    assert [row] == measured(capsys, "broadcast", "--topology", "sips8", "-b", "1M", "-e", "1M", "-n", "1")


def test_times_are_those_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    """They are what a program's estimate of the same collective says."""
    (row,) = measured(capsys, "all_gather", "--topology", "sips16", "-b", "64K", "-e", "64K")
    found: list[float] = []

    def program(rank: int) -> None:
        torch.distributed.init_process_group("nccl")
        out, give = torch.zeros(1 << 14), torch.from_numpy(np.ones(1 << 10, np.float32))
        with torch.distributed._time_estimator() as time:
            torch.distributed.all_gather_into_tensor(out, give)
        found.append(time.estimated_time)

    with torch.open_world("sips16"):
        torch.multiprocessing.spawn(program, nprocs=16)
    assert found == pytest.approx([row["time_us"]] * 16)


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["all_reduce", "--topology", "nowhere"], 'there is no topology preset "nowhere"'),
        (["all_reduce", "--algorithm", "quick"], 'unknown all_reduce algorithm "quick"'),
        (["all_reduce", "-d", "int3"], 'unknown dtype "int3"'),
        (["gather", "-r", "9"], "root 9 is not one of the 4 ranks"),
        (["all_reduce", "-b", "2K", "-e", "1K"], "sizes from 2048 to 1024 bytes"),
        (["all_reduce", "-g", "9999999"], "must be a whole number from 1 to 1048576"),
    ],
)
def test_mistakes(capsys: pytest.CaptureFixture[str], args: list[str], why: str) -> None:
    assert cli.main(["bandwidth", *args]) == 1
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "1e400", "K", "nan"])
def test_sizes_that_are_none(capsys: pytest.CaptureFixture[str], text: str) -> None:
    with pytest.raises(SystemExit):
        cli.main(["bandwidth", "all_reduce", f"-b={text}"])
    assert "is no size" in capsys.readouterr().err


def test_many_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    """A preset grows node by node."""
    args = ["all_reduce", "--topology", "nodes2x8", "-b", "1M", "-e", "1M", "--algorithm", "hierarchical"]
    small, large = (measured(capsys, *args, "-g", str(ranks))[0] for ranks in (16, 4096))
    assert small["time_us"] < large["time_us"] < 10 * small["time_us"]
