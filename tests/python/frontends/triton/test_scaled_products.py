"""tl.dot_scaled against what Triton made of the same operands on a GPU, and against values one by one.

recorded_scaled.json has the operands and the result of a kernel as bytes in hexadecimal digits, of random elements and
scales; in every second row some scales are 0, 254 and NaN. It names the Triton, PyTorch and GPU.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import torchemu.frontends.triton.face.language as tl
from torchemu.frontends.triton import _types
from torchemu.frontends.triton._values import tensor

M, N, K = 32, 32, 64
ROWS = json.loads((Path(__file__).parent / "recorded_scaled.json").read_text())["rows"]
KINDS = {"bf16": (ml_dtypes.bfloat16, _types.bfloat16), "fp16": (np.float16, _types.float16)}


ONE = tensor(np.zeros((32, 1), np.uint8), _types.uint8)


def block(text: str | None, kind: str, rows: int) -> Any:
    """A block of so many rows of recorded bytes; None where there are none."""
    if text is None:
        return None
    numpy, triton = KINDS.get(kind, (np.uint8, _types.uint8))
    return tensor(np.frombuffer(bytes.fromhex(text), numpy).reshape(rows, -1), triton)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(row["formats"]))
def test_products_are_a_gpus(row: dict[str, Any]) -> None:
    lhs, rhs = row["formats"]
    packed = 2 if rhs == "e2m1" else 1
    x, y = block(row["lhs"], lhs, M), block(row["rhs"], rhs, K // packed)
    scales = block(row["lhs_scale"], "", M), block(row["rhs_scale"], "", N)
    acc = tensor(np.full((M, N), 1.5, np.float32), _types.float32)
    got = tl.dot_scaled(x, scales[0], lhs, y, scales[1], rhs, acc).data
    want = np.frombuffer(bytes.fromhex(row["result"]), np.float32).reshape(M, N)
    assert (np.isnan(got) == np.isnan(want)).all()
    size = np.nanmax(np.abs(want))
    np.testing.assert_allclose(got, want, atol=2e-6 * size, rtol=0)  # sums of float32, in another order


def test_elements_of_four_bits() -> None:
    """All 16 values, two in a byte along either dimension, times the identity."""
    values = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    want = np.array(values + [-v for v in values], np.float32)
    low = tensor(np.tile(np.arange(16, dtype=np.uint8)[:, None], (1, 16)), _types.uint8)  # its pair is 0
    eye = tensor(np.eye(32, dtype=ml_dtypes.bfloat16), _types.bfloat16)
    got = tl.dot_scaled(low, None, "e2m1", eye, None, "bf16").data
    assert (got[:, ::2] == want[:, None]).all() and (got[:, 1::2] == 0).all()
    eye = tensor(np.eye(16, dtype=np.float16), _types.float16)
    along = tl.dot_scaled(low, None, "e2m1", eye, None, "fp16", lhs_k_pack=False)
    assert (along.data[::2] == want[:, None]).all() and (along.data[1::2] == 0).all()


def test_scales_are_of_blocks() -> None:
    ones = tensor(np.ones((16, 64), ml_dtypes.bfloat16), _types.bfloat16)
    right = tensor(np.full((64, 16), 0x38, np.uint8), _types.uint8)  # 1 in e4m3
    scales = np.full((16, 2), 127, np.uint8)
    scales[3] = 128, 126
    got = tl.dot_scaled(ones, None, "bf16", right, tensor(scales, _types.uint8), "e4m3").data
    want = np.full((16, 16), 64.0)
    want[:, 3] = 32 * 2 + 32 / 2
    assert (got == want).all()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((None, "e3m2"), "the format 'e3m2' is none of e4m3, e5m2, e2m1, bf16, fp16"),
        ((None, "bf16"), "an operand of uint8 is none of bf16"),
        ((ONE, "e4m3"), "lhs_scale is of shape .32, 1., and has to be of .32, 2."),
        ((None, "e2m1"), "of .32, 128. and .64, 32. elements: the common dimension differs"),
    ],
)
def test_wrong_operands_are_refused(arguments: tuple[Any, str], said: str) -> None:
    x, y = (tensor(np.zeros(shape, np.uint8), _types.uint8) for shape in ((32, 64), (64, 32)))
    with pytest.raises(ValueError, match=said):
        tl.dot_scaled(x, *arguments, y, None, "e4m3")
