"""The bench contract: a user's bench and ours, on every algorithm and many world sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, YamlFile

from torchemu.launch import bench

OURS = ROOT / "benches" / "ccl_allreduce.py"
USERS = ROOT.parent / "shared" / "acceptance" / "ccl_allreduce.py"

ALGORITHMS = [
    "auto",
    "ring",
    "bidirectional_ring",
    "halving_doubling",
    "double_binary_tree",
    "one_shot",
    "two_shot",
    "torus_2d",
    "hierarchical",
    "hierarchical_direct",
    "two_shot_staggered",
]
WORLD_SIZES = [1, 2, 4, 7, 8, 16, 64, 128]
SIPS = {"sips2": 2, "default": 4, "sips8": 8, "sips16": 16, "nodes2x8": 16}
COLUMNS = ["collective", "algorithm", "ranks", "bytes", "time", "(us)", "algbw", "(GB/s)", "busbw", "(GB/s)"]


@pytest.fixture
def users() -> Path:
    """A bench that a user of kernbench wrote; it is no part of this project, and CI has it beside the checkout."""
    if not USERS.is_file():
        pytest.skip(f"the user's bench is not there: {USERS}")
    return USERS


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Our own bench, without its largest size."""
    load = bench.load

    def with_small_sizes(file: Path) -> Any:
        run = load(file)
        run.__globals__["ELEMENTS"] = (1, 32, 500)
        return run

    monkeypatch.setattr(bench, "load", with_small_sizes)
    return OURS


def rows(out: str) -> list[list[str]]:
    """The lines of the table under its header."""
    lines = [line.split() for line in out.splitlines()]
    return lines[lines.index(COLUMNS) + 1 :]


def check_row(row: list[str], algorithm: str, ranks: int, nbytes: int) -> None:
    collective, chosen, n, size, time, algbw, busbw = row
    assert (collective, n, size) == ("all_reduce", str(ranks), str(nbytes))
    assert chosen == algorithm or algorithm == "auto"
    assert chosen in ALGORITHMS[1:]
    assert (float(time) > 0) == (ranks > 1)
    if ranks > 1:
        # nccl-tests' definitions, within what three decimals can show
        assert float(algbw) == pytest.approx(nbytes / float(time) / 1e3, abs=2e-3, rel=1e-2)
        assert float(busbw) == pytest.approx(float(algbw) * 2 * (ranks - 1) / ranks, abs=2e-3)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("world_size", WORLD_SIZES)
class TestEveryAlgorithmAndWorldSize:
    def test_users_bench(
        self, users: Path, yaml_file: YamlFile, capsys: pytest.CaptureFixture[str], algorithm: str, world_size: int
    ) -> None:
        bench.run(users, ccl=yaml_file(f"defaults: {{algorithm: {algorithm}, world_size: {world_size}}}"))
        out = capsys.readouterr().out
        assert f"\n  {algorithm} (ws={world_size}): {world_size} OK\n" in out
        assert "FAIL" not in out
        (row,) = rows(out)
        check_row(row, algorithm, world_size, 64)

    def test_our_bench(
        self, ours: Path, yaml_file: YamlFile, capsys: pytest.CaptureFixture[str], algorithm: str, world_size: int
    ) -> None:
        bench.run(ours, ccl=yaml_file(f"defaults: {{algorithm: {algorithm}, world_size: {world_size}}}"))
        out = capsys.readouterr().out
        assert out.count(": OK\n") == 3
        for row, nbytes in zip(rows(out), (2, 64, 1000), strict=True):
            check_row(row, algorithm, world_size, nbytes)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("preset", SIPS)
class TestOneRankPerSIP:
    def test_users_bench(
        self, users: Path, yaml_file: YamlFile, capsys: pytest.CaptureFixture[str], algorithm: str, preset: str
    ) -> None:
        bench.run(users, preset, yaml_file(f"defaults: {{algorithm: {algorithm}}}"))
        out, n = capsys.readouterr().out, SIPS[preset]
        assert out.startswith(f"ccl_allreduce.py on {preset} ({n} SIPs)\n  {algorithm} (ws={n}): {n} OK\n")
        (row,) = rows(out)
        check_row(row, algorithm, n, 64)

    def test_our_bench(
        self, ours: Path, yaml_file: YamlFile, capsys: pytest.CaptureFixture[str], algorithm: str, preset: str
    ) -> None:
        bench.run(ours, preset, yaml_file(f"defaults: {{algorithm: {algorithm}}}"))
        out = capsys.readouterr().out
        assert f"  all_reduce of 500 float16 on {SIPS[preset]} ranks: OK\n" in out
        for row, nbytes in zip(rows(out), (2, 64, 1000), strict=True):
            check_row(row, algorithm, SIPS[preset], nbytes)


def test_float32_partial_sums(users: Path, yaml_file: YamlFile, capsys: pytest.CaptureFixture[str]) -> None:
    text = "defaults: {algorithm: ring}\nalgorithms: {ring: {world_size: 16, n_elem: 1000, accumulate: f32}}"
    bench.run(users, ccl=yaml_file(text))
    out = capsys.readouterr().out
    assert "  ring (ws=16): 16 OK\n" in out
    (row,) = rows(out)
    check_row(row, "ring", 16, 2000)
