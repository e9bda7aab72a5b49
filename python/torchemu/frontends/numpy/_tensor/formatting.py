"""Printing of tensors, as PyTorch does it, with the device where it is not the host."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._settings import Printing

if TYPE_CHECKING:
    from torchemu.frontends.numpy._tensor.core import Tensor

__all__ = [
    "set_printoptions",
]


class _Numbers:
    """The form of one tensor's elements: all in the same form and width."""

    def __init__(self, elements: np.ndarray, options: Printing) -> None:
        self._is_float = elements.dtype.kind == "f"
        self._form = ""
        self._point = ""
        self._width = 1
        if self._is_float:
            self._choose_form(elements, options)
        else:
            self._width = max((len(str(x)) for x in elements.ravel().tolist()), default=1)

    def _choose_form(self, elements: np.ndarray, options: Printing) -> None:
        """Whole numbers, a fixed number of decimals, or exponents where the magnitudes are too different."""
        self._form, self._point = ".0f", "."
        wide = np.abs(elements.astype(np.float64).ravel())
        some = wide[np.isfinite(wide) & (wide != 0)]
        if not some.size:
            return
        least, most = float(some.min()), float(some.max())
        whole = bool((some == np.ceil(some)).all())
        scientific = most / least > 1000 or most > 1e8 or (not whole and least < 1e-4)
        if options.sci_mode if options.sci_mode is not None else scientific:
            self._form, self._point = f".{options.precision}e", ""
        elif not whole:
            self._form, self._point = f".{options.precision}f", ""
        finite = elements[np.isfinite(elements) & (elements != 0)].tolist()
        self._width = max(len(format(x, self._form)) for x in finite) + len(self._point)

    def width(self) -> int:
        """Characters an element takes."""
        return self._width

    def written(self, x: Any) -> str:
        """One element, padded to the width."""
        if not self._is_float:
            return str(x).rjust(self._width)
        point = self._point if math.isfinite(x) else ""
        return (format(x, self._form) + point).rjust(self._width)


def _shown(elements: np.ndarray, edge: int) -> np.ndarray:
    """The elements without those that a summary leaves out."""
    for axis, n in enumerate(elements.shape):
        if n > 2 * edge:
            elements = np.take(elements, [*range(edge), *range(n - edge, n)], axis)
    return elements


def _body(elements: np.ndarray, numbers: _Numbers, indent: int, summarize: bool, options: Printing) -> str:
    if not elements.ndim:
        return numbers.written(elements.item())
    edge = options.edgeitems
    cut = summarize and len(elements) > 2 * edge
    kept: list[Any] = [*elements[:edge], ..., *elements[len(elements) - edge :]] if cut else list(elements)
    if elements.ndim == 1:
        return _row(kept, numbers, indent, options)
    rows = ["..." if row is ... else _body(row, numbers, indent + 1, summarize, options) for row in kept]
    gap = "," + "\n" * (elements.ndim - 1) + " " * (indent + 1)
    return "[" + gap.join(rows) + "]"


def _row(kept: list[Any], numbers: _Numbers, indent: int, options: Printing) -> str:
    """A vector, broken into lines."""
    words = [" ..." if x is ... else numbers.written(x.item()) for x in kept]
    per_line = max(1, (options.linewidth - indent) // (numbers.width() + 2))
    lines = [", ".join(words[i : i + per_line]) for i in range(0, len(words), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def formatted(t: Tensor) -> str:
    """The text of a tensor whose elements are there."""
    options, prefix = (
        _settings.current().printing,
        f"{type(t).__name__.lower()}(" if type(t).__name__ == "Tensor" else f"{type(t).__name__}(",
    )
    elements = t._read()
    if elements.dtype.kind == "V" or elements.dtype == np.float16:
        elements = elements.astype(np.float32)
    suffixes = _suffixes(t)
    if not elements.size:
        body = "[]"
    elif t.dtype.is_complex:
        body = np.array2string(elements, separator=", ", prefix=prefix)
    else:
        summarize = elements.size > options.threshold
        numbers = _Numbers(_shown(elements, options.edgeitems) if summarize else elements, options)
        body = _body(elements, numbers, len(prefix), summarize, options)
    return _with_suffixes(prefix + body, suffixes, len(prefix), options)


def _suffixes(t: Tensor) -> list[str]:
    suffixes = [f"device='{t.device}'"] if not t.device.is_host else []
    default = _settings.current().dtype
    if not t.numel():
        if len(t._shape) != 1:
            suffixes.append(f"size={tuple(t._shape)}")
        if t.dtype is not default:
            suffixes.append(f"dtype={t.dtype!r}")
    elif t.dtype not in (default, dtypes.int64, dtypes.bool_):
        suffixes.append(f"dtype={t.dtype!r}")
    if t.grad_fn is not None:
        suffixes.append(f"grad_fn=<{type(t.grad_fn).__name__}>")
    elif t.requires_grad:
        suffixes.append("requires_grad=True")
    return suffixes


def _with_suffixes(text: str, suffixes: list[str], indent: int, options: Printing) -> str:
    """The text with what comes behind the elements, on new lines where a line would be too long."""
    line = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if line + len(suffix) + 2 > options.linewidth:
            text += ",\n" + " " * indent + suffix
            line = indent + len(suffix)
        else:
            text += ", " + suffix
            line += len(suffix) + 2
    return text + ")"


_PROFILES = {
    "default": Printing(),
    "short": Printing(precision=2, edgeitems=2),
    "full": Printing(threshold=math.inf),
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Returns how the rank's tensors are printed: the decimals; how many elements are printed in full, and else how
    many at each end of a dimension; the width of lines; whether with exponents (None: where it is better); or one of
    the profiles "default", "short" and "full"."""
    settings = _settings.current()
    if profile is not None:
        settings.printing = Printing(**vars(_PROFILES[profile]))
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    for name, value in given.items():
        if value is not None:
            setattr(settings.printing, name, value)
    settings.printing.sci_mode = sci_mode
