"""torch.testing: assert_close."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._absent import lacks
from torchemu.frontends.numpy._tensor.comparing import close
from torchemu.frontends.numpy._tensor.conversion import converted, quietly
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.from_data import as_tensor
from torchemu.frontends.numpy._tensor.promotion import promote_types
from torchemu.frontends.numpy._tensor.reductions import wide

_TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
_TOLERANCES |= {"complex64": _TOLERANCES["float32"], "complex128": _TOLERANCES["float64"]}
"""rtol and atol, where none are given; other dtypes must be equal."""


@dataclass(frozen=True)
class _Check:
    """The arguments of assert_close."""

    rtol: float | None
    atol: float | None
    equal_nan: bool
    allow_subclasses: bool
    device: bool
    dtype: bool
    layout: bool
    stride: bool
    msg: str | Callable[[str], str] | None

    def tolerances(self, *kinds: dtypes.dtype) -> tuple[float, float]:
        """rtol and atol for a comparison of these dtypes: the larger ones."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        defaults = [_TOLERANCES.get(k.name, (0.0, 0.0)) for k in kinds]
        return max(d[0] for d in defaults), max(d[1] for d in defaults)

    def failed(self, text: str, where: str, kind: type[Exception] = AssertionError) -> Exception:
        """The error, with the place in nested containers and the caller's own message."""
        if where:
            text += f"\n\nThe failure occurred for item {where}"
        if kind is AssertionError and self.msg is not None:
            text = self.msg(text) if callable(self.msg) else self.msg
        return kind(text)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raises AssertionError unless all elements of tensors, numbers, or sequences or mappings of them are nearly equal:
    \\|actual - expected\\| ≤ atol + rtol·\\|expected\\|. The tolerances depend on the dtype unless both are given.

    Raises:
        AssertionError: they are not, or shapes, dtypes, devices, lengths or keys differ.
        ValueError: only one of rtol and atol is given.
        TypeError: what cannot be compared.
    """
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    check = _Check(rtol, atol, equal_nan, allow_subclasses, check_device, check_dtype, check_layout, check_stride, msg)
    _compare(check, actual, expected, "")


def _compare(check: _Check, actual: Any, expected: Any, where: str) -> None:
    if isinstance(actual, Tensor | np.ndarray) and isinstance(expected, Tensor | np.ndarray):
        _compare_tensors(check, as_tensor(actual), as_tensor(expected), where)
    elif _is_number(actual) and _is_number(expected):
        _compare_numbers(check, actual, expected, where)
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        _compare_mappings(check, actual, expected, where)
    elif _is_sequence(actual) and _is_sequence(expected):
        _compare_sequences(check, actual, expected, where)
    elif actual is None and expected is None:
        return
    else:
        _compare_unlike(check, actual, expected, where)


def _is_number(x: Any) -> bool:
    return isinstance(x, dtypes.NUMBERS)


def _is_sequence(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, str)


def _compare_unlike(check: _Check, actual: Any, expected: Any, where: str) -> None:
    """Raises in any case."""
    if (actual is None) != (expected is None):
        raise check.failed(f"None mismatch: {actual} is not {expected}", where)
    raise check.failed(
        f"No comparison pair was able to handle inputs of type {_type(actual)} and {_type(expected)}.", where, TypeError
    )


def _type(x: Any) -> str:
    return "<class 'torch.Tensor'>" if isinstance(x, Tensor) else str(type(x))


def _compare_sequences(check: _Check, actual: Sequence[Any], expected: Sequence[Any], where: str) -> None:
    if len(actual) != len(expected):
        raise check.failed(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", where)
    for i, (a, b) in enumerate(zip(actual, expected, strict=True)):
        _compare(check, a, b, f"{where}[{i}]")


def _compare_mappings(check: _Check, actual: Mapping[Any, Any], expected: Mapping[Any, Any], where: str) -> None:
    missing = [k for k in expected if k not in actual]
    extra = [k for k in actual if k not in expected]
    if missing or extra:
        raise check.failed(
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {missing}\nAdditional keys in the actual mapping: {extra}",
            where,
        )
    for k in actual:
        _compare(check, actual[k], expected[k], f"{where}[{k!r}]")


def _compare_numbers(check: _Check, actual: Any, expected: Any, where: str) -> None:
    if check.dtype and type(actual) is not type(expected) and not isinstance(actual, np.generic):
        raise check.failed(f"The (d)types do not match: {type(actual)} != {type(expected)}.", where)
    wide_kinds = [dtypes.float64 if isinstance(x, float | complex) else dtypes.int64 for x in (actual, expected)]
    rtol, atol = check.tolerances(*wide_kinds)
    if quietly(close, np.asarray(actual), np.asarray(expected), rtol, atol, check.equal_nan):
        return
    off = abs(actual - expected)
    relative = off / abs(expected) if expected else float("inf")
    raise check.failed(
        f"Scalars are not {_wish(rtol, atol)}!\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {off}{_allowed(atol)}\nRelative difference: {relative}{_allowed(rtol)}",
        where,
    )


def _wish(rtol: float, atol: float) -> str:
    return "equal" if rtol == atol == 0 else "close"


def _allowed(tolerance: float) -> str:
    return f" (up to {tolerance} allowed)" if tolerance else ""


def _compare_tensors(check: _Check, actual: Tensor, expected: Tensor, where: str) -> None:
    _compare_attributes(check, actual, expected, where)
    for t in (actual, expected):
        t.wait()
    a, b = actual._read(), expected._read()
    rtol, atol = check.tolerances(actual.dtype, expected.dtype)
    near = np.asarray(quietly(close, a, b, rtol, atol, check.equal_nan))
    if not near.all():
        raise check.failed(quietly(_differences, a, b, near, rtol, atol), where)


def _compare_attributes(check: _Check, actual: Tensor, expected: Tensor, where: str) -> None:
    pairs: list[tuple[str, bool, Any, Any]] = [
        ("shape", True, actual.shape, expected.shape),
        ("device", check.device, actual.device, expected.device),
        ("dtype", check.dtype, actual.dtype, expected.dtype),
        ("stride()", check.stride, actual.stride(), expected.stride()),
    ]
    for name, wanted, a, b in pairs:
        if wanted and a != b:
            raise check.failed(f"The values for attribute '{name}' do not match: {a} != {b}.", where)


def _differences(a: np.ndarray, b: np.ndarray, near: np.ndarray, rtol: float, atol: float) -> str:
    """Returns how many elements differ, and by how much at most: calculated in their own dtype."""
    kind = promote_types(dtypes.of_numpy(a), dtypes.of_numpy(b))
    number = kind.numpy if kind.is_inexact else np.dtype(np.int64)
    ratio = kind.to_real().numpy if kind.is_inexact else np.dtype(np.float32)
    a, b = converted(a, number), converted(b, number)
    absolute = np.where(near, 0, np.abs(a - b)).astype(ratio if kind.is_inexact else number)
    relative = np.where(near, ratio.type(0), converted(absolute, ratio) / converted(np.abs(b), ratio))
    if not near.ndim:
        return (
            f"Scalars are not {_wish(rtol, atol)}!\n\nExpected {b.item()} but got {a.item()}.\n"
            f"Absolute difference: {absolute.item()}{_allowed(atol)}\n"
            f"Relative difference: {relative.item()}{_allowed(rtol)}"
        )
    wrong = int(np.count_nonzero(~near))
    return (
        f"Tensor-likes are not {_wish(rtol, atol)}!\n\n"
        f"Mismatched elements: {wrong} / {near.size} ({wrong / near.size:.1%})\n"
        f"Greatest absolute difference: {_greatest(absolute)}{_allowed(atol)}\n"
        f"Greatest relative difference: {_greatest(relative)}{_allowed(rtol)}"
    )


def _greatest(differences: np.ndarray) -> str:
    place = np.unravel_index(int(np.argmax(wide(differences))), differences.shape)
    return f"{differences[place].item()} at index {tuple(map(int, place))}"


__getattr__ = lacks(__name__)
