"""benches/ccl_bandwidth.py: its options, its columns, and that it finds what is wrong."""

from __future__ import annotations

import dataclasses
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import ROOT

from torchemu.launch import cli

BENCH = ROOT / "benches" / "ccl_bandwidth.py"
NAMES = [
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "gather", "scatter", "alltoall", "sendrecv",
]  # fmt: skip
REDUCING, ROOTED = ("all_reduce", "reduce_scatter", "reduce"), ("broadcast", "reduce", "gather", "scatter")
OUT, IN = slice(5, 9), slice(9, 13)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The bench, as a module."""
    monkeypatch.syspath_prepend(str(BENCH.parent))
    import ccl_bandwidth  # type: ignore[import-not-found]

    yield ccl_bandwidth
    for name in [n for n in sys.modules if n.partition(".")[0] in ("bandwidth", "ccl_bandwidth")]:
        del sys.modules[name]


@pytest.fixture
def table(bench: ModuleType, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs it with options, and returns the cells of its rows by collective."""

    def run(options: str, status: int = 0) -> dict[str, list[list[str]]]:
        assert bench.main(options.split()) == status
        out, err = capsys.readouterr()
        assert err == ""
        rows: dict[str, list[list[str]]] = {}
        for line in out.splitlines():
            words = line.split()
            if line.startswith("# ") and len(words) == 2 and words[1] in NAMES:
                rows[words[1]] = []
            elif not line.startswith("#"):
                rows[list(rows)[-1]].append(words)
        run.text = out  # type: ignore[attr-defined]
        return rows

    return run


# -- columns


def test_every_collective(table: Any) -> None:
    rows = table("-b 64 -e 4096 -f 8 -g 4")
    assert list(rows) == NAMES
    for name, lines in rows.items():
        blocks = name in ("all_gather", "reduce_scatter", "gather", "scatter", "alltoall")
        assert [line[:5] for line in lines] == [
            [str(size), str(size // 4 // (4 if blocks else 1)), "float", "sum" if name in REDUCING else "none",
             "0" if name in ROOTED else "-1"]
            for size in (64, 512, 4096)
        ]  # fmt: skip
        for line in lines:
            assert len(line) == 13
            assert line[OUT][3] == "0"
            assert line[IN][3] == ("N/A" if name in ("alltoall", "sendrecv") else "0")


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_bandwidths_are_nccl_tests(table: Any, ranks: int) -> None:
    share = (ranks - 1) / ranks
    bus = dict.fromkeys(NAMES, share) | {"all_reduce": 2 * share, "broadcast": 1, "reduce": 1, "sendrecv": 1}
    for name, lines in table(f"-b 1M -e 1M -g {ranks}").items():
        for columns in (OUT, IN):
            microseconds, algbw, busbw, _ = map(float, [*lines[0][columns][:3], 0])
            if microseconds:
                assert algbw == pytest.approx(int(lines[0][0]) / microseconds / 1e3, rel=0.01, abs=0.01)
            assert busbw == pytest.approx(algbw * bus[name], rel=0.01, abs=0.02)


def test_time_of_a_broadcast_has_a_closed_form(table: Any) -> None:
    """Two ranks, one link of 100 GB/s: a message of so many bytes."""
    (row,) = table("broadcast -b 10000000 -e 10000000 -g 2")["broadcast"]
    assert 100 < float(row[5]) < 103  # 10^7 bytes at 10^11 bytes a second, and the latencies
    assert row[6] == row[7]


@pytest.mark.slow
def test_ranks_start_together(table: Any) -> None:
    """Ranks that leave a barrier late must not make what others had begun look short: a message takes 0.83 us."""
    for name, lines in table("-b 64 -e 4096 -f 64 -g 32 --topology sips16").items():
        assert all(float(line[i]) >= 0.83 for line in lines if line[0] != "0" for i in (5, 9)), name


def test_header_and_footer(table: Any) -> None:
    table("-b 1K -e 4K -f 2 -n 3 -w 1 -g 2 -t 2 all_reduce")
    lines = table.text.splitlines()
    assert lines[0] == (
        "# nThread 2 nGpus 2 minBytes 1024 maxBytes 4096 step: 2(factor) warmup iters: 1 iters: 3 agg iters: 1 "
        "validation: 1 graph: 0"
    )
    assert lines[2] == "# Using devices"
    assert [line.split()[:3] for line in lines[3:7]] == [["#", "Rank", str(r)] for r in range(4)]
    assert "out-of-place" in lines[10] and "in-place" in lines[10]
    assert lines[11].split() == [
        "#",
        "size",
        "count",
        "type",
        "redop",
        "root",
        *(2 * ["time", "algbw", "busbw", "#wrong"]),
    ]
    assert lines[12].split()[1:] == ["(B)", "(elements)", *(2 * ["(us)", "(GB/s)", "(GB/s)"])]
    assert len({len(line) for line in lines[13:16]}) == 1
    assert lines[-3] == "# Out of bounds values : 0 OK"
    mean = sum(float(line.split()[i]) for line in lines[13:16] for i in (7, 11)) / 6
    assert float(lines[-2].removeprefix("# Avg bus bandwidth    : ")) == pytest.approx(mean, abs=0.01)


def test_steps_of_bytes(table: Any) -> None:
    rows = table("all_reduce -b 1K -e 4K -i 1K -g 2")
    assert [line[0] for line in rows["all_reduce"]] == ["1024", "2048", "3072", "4096"]
    assert "step: 1024(bytes)" in table.text


def test_all_calls_are_alike(table: Any) -> None:
    once, often = (table(f"all_reduce reduce -b 4K -e 4K -g 4 -n {n} -w {n - 1}") for n in (1, 3))
    assert once == often


# -- results


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double",
                                   "bfloat16", "f8e4m3", "f8e5m2"])  # fmt: skip
@pytest.mark.parametrize("op", ["sum", "prod", "max", "min", "avg"])
def test_every_dtype_and_op(table: Any, dtype: str, op: str) -> None:
    for name, lines in table(
        f"all_reduce reduce reduce_scatter -b 100 -e 5000 -f 7 -g 5 -d {dtype} -o {op} -r 3"
    ).items():
        for line in lines:
            assert line[2:5] == [dtype, op, "3" if name == "reduce" else "-1"]
            assert line[8] == line[12] == "0"


def test_what_is_wrong_is_counted(bench: ModuleType, table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from bandwidth.collectives import COLLECTIVES  # type: ignore[import-not-found]

    def spoil(call: Any) -> None:
        COLLECTIVES_BEFORE.issue(call)
        if call.rank == 1:
            call.take[:3] += 1

    COLLECTIVES_BEFORE = COLLECTIVES["all_reduce"]  # noqa: N806
    monkeypatch.setitem(COLLECTIVES, "all_reduce", dataclasses.replace(COLLECTIVES_BEFORE, issue=spoil))
    rows = table("all_reduce broadcast -b 1K -e 1K -g 4", status=1)
    assert [rows["all_reduce"][0][i] for i in (8, 12)] == ["3", "3"]
    assert [rows["broadcast"][0][i] for i in (8, 12)] == ["0", "0"]
    assert "# Out of bounds values : 6 FAILED" in table.text
    assert table("all_reduce -b 1K -e 1K -g 4 -c 0")["all_reduce"][0][8] == "N/A"


@pytest.mark.parametrize("name", NAMES)
def test_a_collective_that_does_nothing_is_wrong(
    bench: ModuleType, table: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from bandwidth.collectives import COLLECTIVES

    other = COLLECTIVES["broadcast" if name != "broadcast" else "all_reduce"]

    def nothing(call: Any) -> None:
        call.torch.distributed.all_reduce(call.torch.ones(1))  # something to be timed

    monkeypatch.setitem(COLLECTIVES, name, dataclasses.replace(COLLECTIVES[name], issue=nothing))
    (row,) = table(f"{name} -b 4K -e 4K -g 4", status=1)[name]
    assert int(row[8]) > 0
    assert other.name != name


@pytest.mark.parametrize("world", [2, 5, 64, 300])
@pytest.mark.parametrize("kind", [ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16, np.float16, np.int8])
def test_reductions_are_exact_in_any_order(bench: ModuleType, world: int, kind: Any) -> None:
    from bandwidth.values import reduced, term  # type: ignore[import-not-found]

    rng = np.random.default_rng(world)
    for op, combine in (("sum", np.add), ("prod", np.multiply), ("max", np.maximum)):
        total = None
        for rank in rng.permutation(world):
            one = term(int(rank), world, 100, op, kind)
            total = one if total is None else combine(total, one).astype(kind)
        np.testing.assert_array_equal(np.asarray(total, np.float64), reduced(world, 100, op, kind).astype(np.float64))


# -- the program


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("-b x", "'x' is no size"),
        ("-b -1", "'-1' is no size"),
        ("-b 0", "'0' is no size"),
        ("-f 1", "the factor is at least 2"),
        ("-n 0", "'0' is not a positive number"),
        ("-b 8M -e 1M", "the smallest size, 8388608 bytes (-b), is above the largest, 1048576 bytes (-e)"),
        ("-d quarter", "invalid choice: 'quarter'"),
        ("-o max2", "invalid choice: 'max2'"),
        ("all_scatter", "there is no collective 'all_scatter': there are all_reduce, "),
    ],
)
def test_wrong_options(bench: ModuleType, capsys: pytest.CaptureFixture[str], options: str, said: str) -> None:
    with pytest.raises(SystemExit) as left:
        bench.main(options.split())
    assert left.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [("-r 4", "root 4 is not one of the 4 ranks"), ("--topology sips3", 'there is no topology preset "sips3"')],
)
def test_what_does_not_fit(bench: ModuleType, capsys: pytest.CaptureFixture[str], options: str, said: str) -> None:
    with pytest.raises(SystemExit) as left:
        bench.main(options.split())
    assert left.value.code == 1
    assert said in capsys.readouterr().err


def test_as_a_bench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "small.py"
    file.write_text(
        f"import sys\nsys.path.insert(0, {str(BENCH.parent)!r})\n"
        "import ccl_bandwidth\nfrom bandwidth.options import Options\n"
        "def run(torch):\n    assert ccl_bandwidth.run(torch, Options(('gather',), end=1024)) == 0\n"
    )
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert cli.main(["bench", str(file), "--topology", "sips2"]) == 0
    out = capsys.readouterr().out
    assert "# gather" in out and "# Out of bounds values : 0 OK" in out


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_only(bench: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (io.StringIO(), Terminal()):
        monkeypatch.setattr(sys, "stderr", stream)
        assert bench.main(["all_reduce", "reduce", "-b", "1K", "-e", "4K", "-g", "2"]) == 0
        if isinstance(stream, Terminal):
            shown = [part for part in stream.getvalue().split("\r") if "/" in part]
            assert [part.split()[1] for part in shown] == ["0/4", "1/4", "2/4", "3/4"]
            assert stream.getvalue().endswith("\r\x1b[K")
        else:
            assert stream.getvalue() == ""


def test_progress_fits_the_terminal(bench: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that goes on in the next line could not be cleared."""
    monkeypatch.setenv("COLUMNS", "24")
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    assert bench.main(["all_reduce", "-b", "1K", "-e", "4K", "-g", "2"]) == 0
    shown = stream.getvalue().replace("\x1b[K", "").split("\r")
    assert max(len(part) for part in shown) == 23


def test_plot_that_cannot_be_written(bench: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main(["all_reduce", "--plot", str(tmp_path / "nowhere" / "plot.png")])
    out, err = capsys.readouterr()
    assert out == "" and err.endswith(f"argument --plot: there is no folder {tmp_path}/nowhere\n")


def test_curves_that_are_alike_are_drawn_once(bench: ModuleType) -> None:
    from bandwidth.collectives import COLLECTIVES
    from bandwidth.plot import curves, readable  # type: ignore[import-not-found]
    from bandwidth.sweep import Result, Row  # type: ignore[import-not-found]

    rows = [
        Row(COLLECTIVES[name], 1024, 1, [Result(time, 1.0, 2.0, 0)])
        for name, time in (("gather", 3.0), ("scatter", 3.0), ("reduce", 4.0))
    ]
    rows.append(Row(COLLECTIVES["reduce"], 0, 0, [Result(0.0, 0.0, 0.0, 0)]))  # has no place on a logarithmic scale
    assert list(curves(rows).values()) == [["gather", "scatter"], ["reduce"]]
    assert [readable(n) for n in (1, 1023, 1024, 1536, 1 << 20, 1 << 40)] == [
        "1 B", "1.02e+03 B", "1 KiB", "1.5 KiB", "1 MiB", "1.02e+03 GiB",
    ]  # fmt: skip


def test_plot(bench: ModuleType, table: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    table(f"all_reduce gather -b 1K -e 16K -g 2 --plot {tmp_path}/p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_plot_without_matplotlib(
    bench: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit):
        bench.main(["--plot", "p.png"])
    assert "pip install 'torchemu[plot]'" in capsys.readouterr().err
