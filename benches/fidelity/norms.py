"""Times of normalization of rows, and of the gradients.

    python benches/fidelity/norms.py --record h200_norms.csv

has recorded on an H200 what h200_norms.csv has: each call alone on the device, without the host. Beside it, what the
preset predicts:

    torchemu run --torch real --no-data --topology h200_8 --nproc-per-node 1 benches/fidelity/norms.py
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 (as programs have it)
from layers import Call, drawn_shapes, of_shapes, record_or_compare

RECORDED = Path(__file__).with_name("h200_norms.csv")

_SHAPES = (
    (1, 64), (1, 768), (1, 4096), (1, 16384), (8, 4096), (16, 8192), (32, 1024), (64, 5120), (128, 4096), (256, 768),
    (512, 512), (512, 8192), (1024, 2048), (1024, 32768), (2048, 768), (2048, 4096), (4096, 1024), (4096, 12288),
    (8192, 96), (8192, 768), (8192, 4096), (8192, 8192), (16384, 768), (16384, 2048), (16384, 4096), (25088, 384),
    (32768, 128), (32768, 1024), (65536, 256), (65536, 768), (100352, 96), (131072, 64), (262144, 128), (1048576, 32),
)  # fmt: skip
"""Rows, and their width."""


def _drawn() -> list[tuple[int, ...]]:
    """Returns shapes of up to 2^25 elements, to which nothing is fitted."""
    draw = random.Random(127)
    return drawn_shapes(24, 1 << 25, lambda: (round(2 ** draw.uniform(0, 18)), 8 * round(2 ** draw.uniform(2, 11))))


def _of(name: str, dtype: torch.dtype, rows: int, width: int) -> Iterator[tuple[str, Call]]:
    ops, about = torch.ops.aten, f"{name} {rows} {width}"
    x, grad, weight = (torch.randn(*shape, device="cuda").to(dtype) for shape in ((rows, width),) * 2 + ((width,),))
    layer = functools.partial(ops.native_layer_norm, x, (width,), weight, weight, 1e-5)
    yield f"layer_norm {about}", layer
    _, mean, scale = layer()
    yield (
        f"layer_norm_backward {about}",
        functools.partial(
            ops.native_layer_norm_backward, grad, x, (width,), mean, scale, weight, weight, (True, True, True)
        ),
    )
    yield f"rms_norm {about}", functools.partial(F.rms_norm, x, (width,), weight, 1e-5)
    _, root = ops._fused_rms_norm(x, (width,), weight, 1e-5)
    yield (
        f"rms_norm_backward {about}",
        functools.partial(ops._fused_rms_norm_backward, grad, x, (width,), root, weight, (True, True)),
    )


if __name__ == "__main__":
    record_or_compare(__doc__, RECORDED, of_shapes(_of, _SHAPES, _drawn()))
