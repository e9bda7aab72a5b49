"""Times of attention, normalization and recurrent layers by shape, dtype and layout.

    python benches/fidelity/layers.py --record h200_layers.csv

has recorded on an H200 what h200_layers.csv has: each call alone on the device, without the host. Beside it, what the
preset predicts:

    torchemu run --torch real --no-data --topology h200_8 --nproc-per-node 1 benches/fidelity/layers.py
"""

from __future__ import annotations

import argparse
import csv
import functools
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 (as programs have it)
from convolutions import microseconds, predicted

RECORDED = Path(__file__).with_name("h200_layers.csv")
DTYPES = {"bf16": torch.bfloat16, "f32": torch.float32}
Call = Callable[[], object]

_HEADS = [
    (64, 12, 197, 64), (32, 16, 128, 64), (8, 32, 512, 128), (256, 8, 64, 32), (16, 16, 256, 64), (1, 32, 1024, 128),
    (4, 16, 2048, 64), (32, 12, 384, 64), (128, 12, 77, 64), (2, 8, 4096, 40), (8, 12, 1024, 64), (32, 12, 512, 64),
    (2, 32, 4096, 128), (1, 32, 8192, 128), (1024, 4, 49, 32), (1, 12, 128, 64), (8, 16, 1024, 128),
]  # fmt: skip
"""Batch, heads, length and depth."""

_IMAGES = [
    (32, 64, 112), (32, 256, 56), (32, 64, 56), (32, 128, 28), (32, 512, 28), (128, 1024, 14), (32, 1024, 14),
    (32, 512, 7), (64, 1024, 7), (32, 2048, 7), (32, 32, 112), (16, 16, 224), (8, 64, 256), (128, 64, 32), (2, 320, 64),
    (256, 16, 32),
]  # fmt: skip
"""Batch, channels and side."""

_ROWS = [
    (65536, 768), (16384, 768), (8192, 4096), (32768, 1024), (4096, 12288), (100352, 96), (25088, 384), (2048, 768),
    (16384, 2048), (131072, 64),
]  # fmt: skip
"""Rows, and their width."""

_SEQUENCES = [
    ("LSTM", 128, 64, 256, 512, 1), ("LSTM", 128, 32, 512, 512, 2), ("LSTM", 64, 64, 650, 650, 2),
    ("LSTM", 35, 20, 200, 200, 2), ("LSTM", 100, 128, 1024, 1024, 1), ("LSTM", 256, 16, 128, 128, 1),
    ("GRU", 128, 64, 256, 512, 1), ("GRU", 64, 32, 1024, 1024, 2), ("LSTM", 64, 256, 512, 512, 1),
]  # fmt: skip
"""Layers: steps, batch, width of inputs, width of states, and how many layers."""


def with_gradients(call: Call, leaves: Sequence[torch.Tensor]) -> object:
    """Calls, and returns the gradients by leaves."""
    result = call()
    first = result[0] if isinstance(result, tuple) else result
    return torch.autograd.grad(first, leaves, first.detach())


def both(name: str, call: Call, leaves: Sequence[torch.Tensor]) -> Iterator[tuple[str, Call]]:
    """Yields a call alone, and with its gradients."""
    yield name, torch.no_grad()(call)
    yield f"{name}, with gradients", functools.partial(with_gradients, call, leaves)


def drawn(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    """Returns normal elements that ask for gradients."""
    return torch.randn(*shape, device="cuda", dtype=dtype).requires_grad_()


def attentions(name: str, dtype: torch.dtype) -> Iterator[tuple[str, Call]]:
    """Yields attention, causal or not."""
    for shape in _HEADS:
        heads = [drawn(*shape, dtype=dtype) for _ in range(3)]
        for causal in (False, True):
            call = functools.partial(F.scaled_dot_product_attention, *heads, is_causal=causal)
            yield from both(f"attention {'causal ' * causal}{name} {' '.join(map(str, shape))}", call, heads)


def norms(name: str, dtype: torch.dtype) -> Iterator[tuple[str, Call]]:
    """Yields normalization by batch, of images in two layouts, by group and by row."""
    for batch, channels, side in _IMAGES:
        mean, scale = torch.zeros(channels, device="cuda"), drawn(channels, dtype=torch.float32)
        for layout, order in (("nchw", torch.contiguous_format), ("nhwc", torch.channels_last)):
            images = torch.randn(batch, channels, side, side, device="cuda", dtype=dtype)
            images = images.to(memory_format=order).requires_grad_()
            what = f"{name} {layout} {batch} {channels} {side}"
            call = functools.partial(F.batch_norm, images, mean, mean + 1, scale, scale)
            yield from both(f"batch_norm training {what}", functools.partial(call, training=True), [images, scale])
            yield f"batch_norm eval {what}", torch.no_grad()(call)
            if layout == "nchw" and channels % 32 == 0:
                yield from both(f"group_norm {what}", functools.partial(F.group_norm, images, 32), [images])
    for rows, width in _ROWS:
        x, weight = drawn(rows, width, dtype=dtype), drawn(width, dtype=dtype)
        call = functools.partial(F.layer_norm, x, (width,), weight, weight)
        yield from both(f"layer_norm {name} {rows} {width}", call, [x, weight])


def recurrent(name: str, dtype: torch.dtype) -> Iterator[tuple[str, Call]]:
    """Yields layers that go through a sequence."""
    for kind, steps, batch, inner, width, layers in _SEQUENCES:
        module = getattr(torch.nn, kind)(inner, width, layers, device="cuda", dtype=dtype)
        x = drawn(steps, batch, inner, dtype=dtype)
        name_of_call = f"{kind} {name} {steps} {batch} {inner} {width} {layers}"
        yield from both(name_of_call, functools.partial(module, x), [x, *module.parameters()])


def times(timed: Callable[[Call], float]) -> Iterator[tuple[str, float]]:
    """Yields the name of each call, and its microseconds."""
    for kind in (attentions, norms, recurrent):
        for name, dtype in DTYPES.items():
            for what, call in kind(name, dtype):
                yield what, timed(call)


Calls = Callable[..., Iterator[tuple[str, Call]]]
"""A function that yields calls by their names, from the name of a dtype, the dtype and a shape."""


def drawn_shapes(count: int, most: int, draw: Callable[[], tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Returns so many shapes of at most so many elements, as they are drawn."""
    found: list[tuple[int, ...]] = []
    while len(found) < count:
        shape = draw()
        if math.prod(shape) <= most:
            found.append(shape)
    return found


def of_shapes(
    calls: Calls, known: Sequence[tuple[int, ...]], unknown: Sequence[tuple[int, ...]]
) -> Callable[[Callable[[Call], float]], Iterator[tuple[str, float]]]:
    """Returns what yields the name of each call, and its microseconds.

    Args:
        known: shapes that figures are read off.
        unknown: others, whose calls are named as drawn.
    """

    def times(timed: Callable[[Call], float]) -> Iterator[tuple[str, float]]:
        torch.manual_seed(0)
        for name, dtype in DTYPES.items():
            for before, shapes in (("", known), ("drawn ", unknown)):
                for shape in shapes:
                    for what, call in calls(name, dtype, *shape):
                        yield before + what, timed(call)

    return times


def record_or_compare(
    about: str, path: Path, times: Callable[[Callable[[Call], float]], Iterator[tuple[str, float]]]
) -> None:
    """Records the times of calls, or compares recorded ones with what a topology predicts, as the command says."""
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("--record", metavar="FILE", help="write the times instead of comparing them")
    options = parser.parse_args()
    if options.record:
        with open(options.record, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("call", "us"))
            for what, us in times(microseconds):
                writer.writerow((what, f"{us:.2f}"))
                file.flush()
        return
    with path.open(newline="") as file:
        recorded = {row["call"]: float(row["us"]) for row in csv.DictReader(file)}
    ratios = sorted((us / recorded[what], us, what) for what, us in times(predicted) if what in recorded)
    print(f"{'measured us':>12}{'predicted':>12}{'ratio':>8}")
    for ratio, us, what in ratios:
        print(f"{recorded[what]:12.1f}{us:12.1f}{ratio:8.2f}  {what}")
    for most in (0.15, 0.5):
        print(f"within {most:.0%}: {statistics.fmean(abs(ratio - 1) <= most for ratio, _, _ in ratios):.0%}")


if __name__ == "__main__":
    record_or_compare(__doc__, RECORDED, times)
