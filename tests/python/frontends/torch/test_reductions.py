"""Reductions take about what they took on an H200, for shapes to which nothing is fitted."""

import csv
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="no PyTorch is installed here")
from torchemu.frontends.torch.device import reductions
from torchemu.frontends.torch.device.reductions import MOMENTS, PLACED, PLAIN, Reduced

RECORDED = Path(__file__).parents[4] / "benches/fidelity/h200_reductions.csv"
PROCESSORS, LAUNCH, BANDWIDTH = 132, 1818, 4250  # of an H200: SMs, ns, and bytes a ns
KINDS = {"sum": PLAIN, "mean": PLAIN, "norm": PLAIN, "max": PLACED, "argmax": PLACED, "var": MOMENTS}


def drawn(kind):
    """Yields what is reduced by calls that are drawn at random, of 32 bits, and recorded nanoseconds."""
    with RECORDED.open(newline="") as file:
        for row in csv.DictReader(file):
            words = row["call"].split()
            if words[:3] == ["drawn", kind, "f32"] and words[5] != "all":
                rows, length = int(words[3]), int(words[4])
                reduced = Reduced(length, rows, 4, False) if words[5] == "0" else Reduced(rows, length, 4, True)
                yield reduced, 1000 * float(row["us"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_reduction_takes_what_was_recorded(kind):
    ratios = {}
    for reduced, recorded in drawn(kind):
        took = reductions.taking(reduced, KINDS[kind], PROCESSORS)
        ratios[reduced] = (LAUNCH + max(took, reduced.elements * 4 / BANDWIDTH)) / recorded
    far = {reduced: ratio for reduced, ratio in ratios.items() if not 0.5 < ratio < 2}
    assert len(ratios) == 58
    assert len(far) * 20 <= len(ratios), far
    assert sum(0.71 < ratio < 1.4 for ratio in ratios.values()) >= 0.7 * len(ratios)


@pytest.mark.parametrize("is_fastest", [True, False])
@pytest.mark.parametrize("results", [1, 3, 64, 1000, 1 << 20])
@pytest.mark.parametrize("values", [1, 2, 63, 4096, 100_000])
def test_any_shape_has_a_block(results, values, is_fastest):
    """Blocks have no more threads than there may be, and take all elements."""
    shape = reductions._Shape.of(Reduced(results, values, 4, is_fastest))
    assert 1 <= shape.threads <= 512
    assert shape.along * shape.across == shape.threads * shape.together
    assert reductions.taking(Reduced(results, values, 4, is_fastest), PLAIN, 1) > 0
