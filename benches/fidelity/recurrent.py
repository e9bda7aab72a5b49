"""Times of LSTM, GRU and RNN by steps, batch, widths, layers and dtypes.

    python benches/fidelity/recurrent.py --record h200_recurrent.csv

has recorded on an H200 what h200_recurrent.csv has: each call alone on the device, without the host. Beside it, what
the preset predicts:

    torchemu run --torch real --no-data --topology h200_8 --nproc-per-node 1 benches/fidelity/recurrent.py
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import torch
from convolutions import DTYPES
from layers import Call, both, drawn, record_or_compare

RECORDED = Path(__file__).with_name("h200_recurrent.csv")


class Layer(NamedTuple):
    """A layer that goes through a sequence.

    Attributes:
        kind: the name of its module.
        inner, width: of inputs and of states.
        more: bidirectional, packed, projected, or nothing.
    """

    kind: str
    dtype: str
    steps: int
    batch: int
    inner: int
    width: int
    layers: int = 1
    more: str = ""


def chosen() -> Iterator[Layer]:
    """Yields layers in which one size differs at a time."""
    for dtype in ("bf16", "f32", "f16"):
        for batch in (8, 32, 128):
            for width in (64, 128, 256, 512, 1024, 2048):
                yield Layer("LSTM", dtype, 64, batch, width, width)
    for dtype in ("bf16", "f32"):
        for width in (64, 256, 512, 1024):
            yield Layer("GRU", dtype, 64, 32, width, width)
            yield Layer("RNN", dtype, 64, 32, width, width)
        for layers, more in (
            (2, ""),
            (4, ""),
            (1, "bidirectional"),
            (2, "bidirectional"),
            (1, "packed"),
            (1, "projected"),
        ):
            yield Layer("LSTM", dtype, 64, 32, 512, 512, layers, more)
        for steps, inner in ((1, 512), (8, 512), (512, 512), (64, 64), (64, 4096)):
            yield Layer("LSTM", dtype, steps, 32, inner, 512)
        for width in (100, 200, 650):
            yield Layer("LSTM", dtype, 64, 64, width, width)


def at_random(count: int, seed: int) -> Iterator[Layer]:
    """Yields layers that are drawn."""
    draw = random.Random(seed).choice
    for _ in range(count):
        yield Layer(
            draw(("LSTM", "LSTM", "GRU")), draw(("bf16", "f32", "f16")), draw((10, 25, 50, 100, 200)),
            draw((1, 4, 16, 20, 48, 64, 100, 256)), draw((40, 80, 128, 300, 512, 1024)),
            draw((32, 96, 160, 256, 320, 400, 640, 768, 1024, 1500)), draw((1, 1, 2, 3)),
            draw(("", "", "bidirectional")),
        )  # fmt: skip


def judged() -> Iterator[Layer]:
    """Yields layers of which a model is judged, and not fitted to them: the last ones that are recorded."""
    return at_random(60, seed=11)


def called(layer: Layer) -> Iterator[tuple[str, Call]]:
    """Yields a layer's call, and that with its gradients."""
    _, dtype, steps, batch, inner, width, layers, more = layer
    options = {"bidirectional": more == "bidirectional", **({"proj_size": width // 2} if more == "projected" else {})}
    module = getattr(torch.nn, layer.kind)(inner, width, layers, device="cuda", dtype=DTYPES[dtype], **options)
    x = drawn(steps, batch, inner, dtype=DTYPES[dtype])

    def packed() -> object:
        """Calls with sequences of which the shortest has a fourth of the steps."""
        lengths = [steps - i * 3 * steps // 4 // batch for i in range(batch)]
        return module(torch.nn.utils.rnn.pack_padded_sequence(x, lengths))[0].data

    call = packed if more == "packed" else functools.partial(module, x)
    name = " ".join(map(str, layer)).rstrip()
    yield from both(name, call, [x, *module.parameters()])


def times(timed: Callable[[Call], float]) -> Iterator[tuple[str, float]]:
    """Yields the name of each call, and its microseconds."""
    for layer in dict.fromkeys((*chosen(), *at_random(40, seed=7), *judged())):
        for what, call in called(layer):
            yield what, timed(call)


if __name__ == "__main__":
    record_or_compare(__doc__, RECORDED, times)
