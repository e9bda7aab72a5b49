"""Sorting and picking take about what they took on an H200, for shapes to which nothing is fitted."""

import csv
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="no PyTorch is installed here")
from torchemu.frontends.torch.device import sorts

RECORDED = Path(__file__).parents[4] / "benches/fidelity/h200_sorts.csv"
BYTES = {"f32": 4, "bf16": 2, "i64": 8}
PROCESSORS, LAUNCH, BANDWIDTH = 132, 1818, 4250  # of an H200: SMs, ns, and bytes a ns


def drawn(what):
    """Yields the calls of that name that are drawn at random: what follows it, the rows, and recorded nanoseconds."""
    with RECORDED.open(newline="") as file:
        for row in csv.DictReader(file):
            words = row["call"].split()
            if words[:2] == ["drawn", what] and "first" not in words:
                *more, name, number, length = words[2:]
                yield more, sorts.Rows(int(number), int(length), BYTES[name], True), 1000 * float(row["us"])


def taken(nanoseconds, moved):
    """Returns what a kernel takes."""
    return LAUNCH + max(nanoseconds, moved / BANDWIDTH)


def check(ratios):
    """Finds six of seven within 40 %, and all but one of thirty within a factor of two."""
    far = {call: ratio for call, ratio in ratios.items() if not 0.5 < ratio < 2}
    assert len(far) * 30 <= len(ratios), far
    assert sum(0.71 < ratio < 1.4 for ratio in ratios.values()) >= 0.857 * len(ratios)


def test_sorting_takes_what_was_recorded():
    ratios = {}
    for _, rows, recorded in drawn("sort"):
        took = taken(sorts.sorting(rows, PROCESSORS), rows.elements * (2 * rows.itemsize + 8))
        ratios[rows] = took / recorded
    assert len(ratios) == 120
    check(ratios)


def test_picking_takes_what_was_recorded():
    ratios = {}
    for (picked,), rows, recorded in drawn("topk"):
        took = taken(sorts.picking(rows, int(picked), True, PROCESSORS), rows.elements * rows.itemsize)
        ratios[picked, rows] = took / recorded
    assert len(ratios) > 200
    check(ratios)


def test_more_takes_longer():
    """Rows, and elements of rows, never take less than fewer do, within one kernel."""
    for length in (8, 100, 1000, 4000, 100_000):
        times = [
            sorts.sorting(sorts.Rows(number, length, 4, True), PROCESSORS) for number in (128, 1000, 10_000, 50_000)
        ]
        assert times == sorted(times)
    for number in (1, 1000):
        times = [
            sorts.halving(sorts.Rows(number, length, 4, True), PROCESSORS) for length in (1, 32, 1000, 5000, 1 << 20)
        ]
        assert times == sorted(times)
