"""torch.testing: assert_close."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._absent import lacks
from torchemu.frontends.numpy._tensor.comparing import close
from torchemu.frontends.numpy._tensor.conversion import converted, quietly
from torchemu.frontends.numpy._tensor.from_data import as_tensor

_TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
"""rtol and atol, where none are given; other dtypes must be equal."""


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    msg: str | None = None,
) -> None:
    """Raises AssertionError unless all elements of tensors, numbers, or sequences of them are nearly equal:
    \\|actual - expected\\| ≤ atol + rtol·\\|expected\\|. The tolerances depend on the dtypes unless both are given.

    Raises:
        AssertionError: they are not, or shapes, dtypes, devices or lengths differ; msg takes the text's place.
        ValueError: only one of rtol and atol is given.
    """
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    if isinstance(actual, Sequence):
        if len(actual) != len(expected):
            raise AssertionError(msg or f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
        for a, b in zip(actual, expected, strict=True):
            assert_close(
                a, b, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=check_device, check_dtype=check_dtype,
                msg=msg,
            )  # fmt: skip
        return
    a, b = as_tensor(actual), as_tensor(expected)
    for name, wanted, of_a, of_b in (
        ("shape", True, a.shape, b.shape),
        ("device", check_device, a.device, b.device),
        ("dtype", check_dtype, a.dtype, b.dtype),
    ):
        if wanted and of_a != of_b:
            raise AssertionError(msg or f"The values for attribute '{name}' do not match: {of_a} != {of_b}.")
    for t in (a, b):
        t.wait()
    text = quietly(_differences, a._read(), b._read(), *_tolerances(rtol, atol, a.dtype, b.dtype), equal_nan)
    if text:
        raise AssertionError(msg or text)


def _tolerances(rtol: float | None, atol: float | None, *kinds: dtypes.dtype) -> tuple[float, float]:
    """rtol and atol for a comparison of these dtypes: the larger ones."""
    if rtol is not None and atol is not None:
        return rtol, atol
    defaults = [_TOLERANCES.get(k.name, (0.0, 0.0)) for k in kinds]
    return max(d[0] for d in defaults), max(d[1] for d in defaults)


def _differences(a: np.ndarray, b: np.ndarray, rtol: float, atol: float, equal_nan: bool) -> str:
    """Returns how many elements differ, and by how much at most; "" if none does."""
    near = np.asarray(close(a, b, rtol, atol, equal_nan))
    wrong = int(np.count_nonzero(~near))
    if not wrong:
        return ""
    x, y = (converted(each, np.dtype(np.float64)) for each in (a, b))
    absolute = np.where(near, 0, np.abs(x - y))
    relative = np.where(near, 0, absolute / np.abs(y))
    return (
        f"Tensor-likes are not {'equal' if rtol == atol == 0 else 'close'}!\n\n"
        f"Mismatched elements: {wrong} / {near.size} ({wrong / near.size:.1%})\n"
        f"Greatest absolute difference: {_greatest(absolute)} (up to {atol} allowed)\n"
        f"Greatest relative difference: {_greatest(relative)} (up to {rtol} allowed)"
    )


def _greatest(differences: np.ndarray) -> str:
    place = np.unravel_index(int(np.argmax(differences)), differences.shape)
    return f"{differences[place].item()} at index {tuple(map(int, place))}"


__getattr__ = lacks(__name__)
