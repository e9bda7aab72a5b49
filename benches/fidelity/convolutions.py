"""Times of convolutions and their gradients by channels, sides, kernels, strides, groups, dtypes and layouts.

    python benches/fidelity/convolutions.py --record h200_convolutions.csv

has recorded on an H200 what h200_convolutions.csv has: each call alone on the device, without the host. Beside it, what
the preset predicts:

    torchemu run --torch real --no-data --topology h200_8 --nproc-per-node 1 benches/fidelity/convolutions.py

With --drawn it is convolutions that are drawn at random, which nothing is fitted to (h200_drawn.csv).
"""

from __future__ import annotations

import argparse
import csv
import functools
import math
import random
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import torch

RECORDED = Path(__file__).with_name("h200_convolutions.csv")
DRAWN = Path(__file__).with_name("h200_drawn.csv")
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
KINDS = ("forward", "data", "weight")


class Shape(NamedTuple):
    """A convolution.

    Attributes:
        batch: how many images.
        inner, outer: channels of images and of results.
        sides: of an image, its depth first.
        kernel: its sides.
        stride, padding: along every side.
        groups: of channels.
        turned: it is transposed.
    """

    batch: int
    inner: int
    outer: int
    sides: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: int = 1
    padding: int = 0
    groups: int = 1
    turned: bool = False


def square(batch: int, inner: int, outer: int, side: int, kernel: int, stride: int = 1, groups: int = 1) -> Shape:
    """Returns a convolution of square images that keeps their side, or divides it by the stride."""
    return Shape(
        batch, inner, outer, (side, side), (kernel, kernel), stride, kernel // 2 if stride < kernel else 0, groups
    )


_LAYERS = [
    (32, 16, 16, 32, 3), (32, 32, 32, 112, 3), (32, 64, 64, 112, 3), (32, 64, 64, 56, 3), (32, 64, 64, 28, 3),
    (32, 64, 128, 56, 3), (32, 128, 128, 56, 3), (32, 128, 128, 28, 3), (32, 128, 128, 14, 3), (32, 128, 256, 28, 3),
    (32, 256, 256, 28, 3), (32, 256, 256, 14, 3), (32, 256, 512, 14, 3), (32, 512, 512, 14, 3), (32, 512, 512, 7, 3),
    (32, 512, 512, 28, 3), (32, 1024, 1024, 14, 3), (32, 1024, 1024, 7, 3), (32, 48, 48, 56, 3), (32, 96, 96, 28, 3),
    (32, 100, 100, 28, 3), (64, 32, 32, 32, 3), (128, 64, 64, 32, 3), (128, 128, 128, 16, 3), (128, 256, 256, 8, 3),
    (32, 64, 64, 56, 1), (32, 64, 256, 56, 1), (32, 256, 64, 56, 1), (32, 128, 512, 28, 1), (32, 512, 128, 28, 1),
    (32, 512, 256, 28, 1), (32, 256, 1024, 14, 1), (32, 1024, 256, 14, 1), (32, 512, 2048, 7, 1),
    (32, 2048, 512, 7, 1), (32, 1024, 2048, 14, 1), (32, 64, 64, 112, 1), (32, 32, 64, 112, 1), (64, 96, 384, 56, 1),
    (64, 384, 96, 56, 1),
    (32, 32, 64, 28, 5), (32, 64, 64, 56, 5), (32, 192, 256, 14, 5), (32, 64, 64, 28, 7), (32, 8, 32, 112, 7),
    (32, 64, 128, 56, 3, 2), (32, 128, 128, 56, 3, 2), (32, 128, 256, 28, 3, 2), (32, 256, 512, 14, 3, 2),
    (32, 32, 64, 112, 3, 2), (32, 512, 512, 14, 3, 2), (64, 256, 256, 28, 3, 2), (32, 64, 128, 56, 1, 2),
    (32, 256, 512, 28, 1, 2), (32, 512, 1024, 28, 1, 2), (32, 1024, 2048, 14, 1, 2), (64, 64, 128, 56, 1, 2),
    (32, 96, 192, 56, 2, 2), (32, 384, 768, 14, 2, 2), (32, 64, 128, 56, 4, 4),
    (1, 64, 64, 56, 3), (1, 256, 256, 14, 3), (1, 512, 512, 64, 3), (1, 128, 128, 256, 3), (1, 1024, 256, 14, 1),
    (1, 512, 512, 7, 3), (2, 640, 640, 32, 3), (4, 1280, 1280, 16, 3), (4, 320, 320, 64, 3), (8, 64, 64, 56, 3),
    (8, 256, 256, 14, 3), (8, 64, 256, 56, 1), (8, 512, 512, 7, 3), (8, 128, 128, 56, 3), (64, 64, 64, 28, 3),
    (64, 256, 256, 28, 3), (64, 256, 1024, 14, 1), (64, 512, 256, 28, 1), (64, 64, 64, 32, 3),
]  # fmt: skip
"""Arguments of square."""

_FEW = [
    (32, 64, 224, 7, 2), (64, 32, 224, 3, 1), (64, 32, 28, 3, 1), (128, 64, 32, 3, 1), (32, 32, 224, 3, 2),
    (32, 768, 224, 16, 16), (32, 96, 224, 4, 4), (128, 6, 28, 5, 1), (32, 1280, 224, 14, 14), (8, 64, 224, 7, 2),
]  # fmt: skip
"""Batch, results, side, kernel and stride of first layers, of images with 1, 3, 4 and 8 channels."""

_GROUPED = [
    (32, 128, 56, 3, 1, 32), (32, 256, 28, 3, 1, 32), (32, 512, 14, 3, 1, 32), (32, 256, 56, 3, 2, 32),
    (32, 64, 56, 3, 1, 2), (32, 32, 112, 3, 1, 32), (32, 64, 56, 3, 1, 64), (32, 96, 112, 3, 2, 96),
    (32, 144, 56, 3, 1, 144), (32, 384, 14, 3, 1, 384), (32, 960, 7, 3, 1, 960), (32, 96, 56, 7, 1, 96),
    (32, 384, 14, 7, 1, 384), (32, 240, 28, 5, 2, 240), (8, 256, 28, 3, 1, 256), (128, 192, 28, 3, 1, 192),
]  # fmt: skip
"""Batch, channels of both, side, kernel, stride and groups."""

_OTHERS = [
    Shape(32, 64, 32, (56, 56), (2, 2), 2, 0, 1, True), Shape(32, 256, 128, (28, 28), (2, 2), 2, 0, 1, True),
    Shape(32, 512, 256, (14, 14), (4, 4), 2, 1, 1, True), Shape(32, 256, 128, (28, 28), (4, 4), 2, 1, 1, True),
    Shape(64, 128, 64, (32, 32), (4, 4), 2, 1, 1, True), Shape(64, 64, 3, (32, 32), (4, 4), 2, 1, 1, True),
    Shape(8, 80, 512, (3000,), (3,), 1, 1), Shape(8, 512, 512, (3000,), (3,), 2, 1),
    Shape(8, 1, 512, (16000,), (10,), 5),
    Shape(8, 512, 512, (3199,), (3,), 2), Shape(16, 256, 256, (1024,), (1,)), Shape(32, 64, 128, (512,), (5,), 1, 2),
    Shape(8, 1536, 1536, (2048,), (4,), 1, 3, 1536), Shape(4, 4096, 4096, (1024,), (4,), 1, 3, 4096),
    Shape(8, 3, 64, (16, 112, 112), (3, 7, 7), 2, 3), Shape(8, 64, 64, (8, 56, 56), (3, 3, 3), 1, 1),
    Shape(2, 32, 32, (64, 64, 64), (3, 3, 3), 1, 1), Shape(2, 1, 32, (64, 64, 64), (3, 3, 3), 1, 1),
    Shape(2, 128, 128, (16, 16, 16), (3, 3, 3), 1, 1), Shape(8, 256, 256, (4, 14, 14), (1, 1, 1)),
]  # fmt: skip


def shapes() -> Iterator[Shape]:
    """Yields the convolutions."""
    for layer in _LAYERS:
        yield square(*layer)
    for batch, outer, side, kernel, stride in _FEW:
        for inner in (3, 1, 4, 8):
            yield square(batch, inner, outer, side, kernel, stride)
    for batch, channels, side, kernel, stride, groups in _GROUPED:
        yield square(batch, channels, channels, side, kernel, stride, groups)
    yield from _OTHERS


class Operands(NamedTuple):
    """Images, weights and gradients of results, and how they are convolved."""

    images: torch.Tensor
    weight: torch.Tensor
    grad: torch.Tensor
    setting: tuple[object, ...]


def operands(shape: Shape, dtype: torch.dtype, layout: str) -> Operands:
    """Returns a convolution's operands, which lie in memory as a layout says: nchw or nhwc."""
    first, second = (shape.inner, shape.outer) if shape.turned else (shape.outer, shape.inner)
    images = torch.randn(shape.batch, shape.inner, *shape.sides, device="cuda", dtype=dtype)
    weight = torch.randn(first, second // shape.groups, *shape.kernel, device="cuda", dtype=dtype)
    if layout == "nhwc":
        order = torch.channels_last_3d if len(shape.sides) == 3 else torch.channels_last
        images, weight = images.to(memory_format=order), weight.to(memory_format=order)
    dims = len(shape.sides)
    setting = [shape.stride] * dims, [shape.padding] * dims, [1] * dims, shape.turned, [0] * dims, shape.groups
    result = torch.ops.aten.convolution(images, weight, None, *setting)
    return Operands(images, weight, torch.randn_like(result), setting)


def call(kind: str, of: Operands) -> Callable[[], object]:
    """Returns what convolves, or calculates the gradient by the images or by the weights."""
    aten = torch.ops.aten
    if kind == "forward":
        return functools.partial(aten.convolution, of.images, of.weight, None, *of.setting)
    mask = [kind == "data", kind == "weight", False]
    return functools.partial(aten.convolution_backward, of.grad, of.images, of.weight, None, *of.setting, mask)


_BUSY_MS = 3
"""Milliseconds that the calls of a graph take in all, about."""


def microseconds(call: Callable[[], object]) -> float:
    """Returns what a call takes on the device: the median of 5 replays of a graph of 3 to 50."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def elapsed(run: Callable[[], object]) -> float:
        begin.record()
        run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    for _ in range(2):
        call()
    calls = max(3, min(50, math.ceil(_BUSY_MS / max(elapsed(call), 1e-3))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    elapsed(graph.replay)
    return statistics.median(elapsed(graph.replay) for _ in range(5)) * 1000 / calls


def predicted(call: Callable[[], object]) -> float:
    """Returns what a call takes by a topology, in a graph: the host's launches are no part of the recorded times."""
    (begin, end), graph = (torch.cuda.Event(enable_timing=True) for _ in range(2)), torch.cuda.CUDAGraph()
    call()
    with torch.cuda.graph(graph):
        for _ in range(3):
            call()
    graph.replay()  # what comes next is launched while it runs
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1000 / 3


def grid() -> Iterator[tuple[Shape, str, str]]:
    """Yields shapes, dtypes and layouts. Images of a line have one layout."""
    every = list(dict.fromkeys(shapes()))
    for dtype in DTYPES:
        for layout in ("nchw", "nhwc"):
            for shape in every[:: 6 if dtype == "f16" else 1]:
                if layout == "nchw" or len(shape.sides) > 1:
                    yield shape, dtype, layout


def drawn(count: int = 150) -> Iterator[tuple[Shape, str, str]]:
    """Yields shapes, dtypes and layouts at random, with at most 2^26 elements of images and of results."""
    draw = random.Random(1)
    while count:
        kernel, stride, side = (
            draw.choice((1, 3, 3, 5)),
            draw.choice((1, 1, 2)),
            draw.choice((7, 13, 20, 28, 40, 56, 96)),
        )
        inner, outer = (draw.choice((16, 24, 40, 64, 80, 112, 160, 256, 384, 512, 768)) for _ in range(2))
        batch, dtype, layout = (
            draw.choice((2, 8, 24, 64, 100)),
            draw.choice(("f32", "bf16")),
            draw.choice(("nchw", "nhwc")),
        )
        if batch * side**2 * max(inner, outer) <= 1 << 26:
            count -= 1
            yield square(batch, inner, outer, side, kernel, stride), dtype, layout


FIELDS = (*Shape._fields, "dtype", "layout", "kind")


def named(shape: Shape, dtype: str, layout: str, kind: str) -> tuple[str, ...]:
    """Returns the fields of a row before its time."""
    sizes = ("x".join(map(str, v)) if isinstance(v, tuple) else str(int(v)) for v in shape)
    return *sizes, dtype, layout, kind


def times(
    of_all: Iterator[tuple[Shape, str, str]], timed: Callable[[Callable[[], object]], float]
) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yields the fields of each call, and its microseconds."""
    for shape, dtype, layout in of_all:
        of = operands(shape, DTYPES[dtype], layout)
        for kind in KINDS:
            yield named(shape, dtype, layout, kind), timed(call(kind, of))


def main() -> None:
    """Records times, or compares them with what a topology predicts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", metavar="FILE", help="write the times instead of comparing them")
    parser.add_argument("--drawn", action="store_true", help="of convolutions that are drawn at random")
    options = parser.parse_args()
    calls = drawn() if options.drawn else grid()
    if options.record:
        with open(options.record, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow((*FIELDS, "us"))
            for fields, us in times(calls, microseconds):
                writer.writerow((*fields, f"{us:.2f}"))
                file.flush()
        return
    with (DRAWN if options.drawn else RECORDED).open(newline="") as file:
        recorded = {tuple(row[:-1]): float(row[-1]) for row in list(csv.reader(file))[1:]}
    ratios = sorted((us / recorded[fields], us, fields) for fields, us in times(calls, predicted))
    print(f"{'measured us':>12}{'predicted':>12}{'ratio':>8}  {' '.join(FIELDS)}")
    for ratio, us, fields in ratios:
        print(f"{recorded[fields]:12.1f}{us:12.1f}{ratio:8.2f}  {' '.join(fields)}")
    for most in (0.15, 0.5):
        print(f"within {most:.0%}: {statistics.fmean(abs(ratio - 1) <= most for ratio, _, _ in ratios):.0%}")


if __name__ == "__main__":
    main()
