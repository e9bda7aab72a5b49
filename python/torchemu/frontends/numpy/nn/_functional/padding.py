"""pad: more elements at the edges, or fewer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu.frontends.numpy._autograd.derivative import Derivative, Partial
from torchemu.frontends.numpy._tensor.conversion import converted
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import Op, _op, no_flops
from torchemu.frontends.numpy.nn._functional.taps import Taps, single, taken

Array = np.ndarray
Widths = tuple[tuple[int, int], ...]


def _pad(x: Array, widths: Widths, value: Any) -> Array:
    """Widths are before and behind each dimension; negative ones cut off."""
    shape = tuple([n + before + behind for n, (before, behind) in zip(x.shape, widths, strict=True)])
    result = np.empty(shape, x.dtype)
    result[...] = converted(np.asarray(value), x.dtype)
    into = tuple([slice(max(b, 0), n - max(e, 0)) for n, (b, e) in zip(shape, widths, strict=True)])
    of = tuple([slice(max(-b, 0), n - max(-e, 0)) for n, (b, e) in zip(x.shape, widths, strict=True)])
    result[into] = x[of]
    return result


def _opposite(widths: Widths) -> Widths:
    return tuple([(-before, -behind) for before, behind in widths])


PAD: Op = Op(
    "constant_pad_nd",
    _pad,
    no_flops,
    derivative=Derivative(Partial(lambda call, grad: _op(PAD, (grad,), _opposite(call.params[0]), 0))),
)


_NUMPY = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _check_mode(x: Tensor, pad: Sequence[int], mode: str) -> None:
    """Raises:
    NotImplementedError: no such mode, or not of that many dimensions. RuntimeError: more than the elements allow.
    """
    if mode not in _NUMPY:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if len(pad) not in (2, 4, 6) or x.dim() - len(pad) // 2 not in (1, 2):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {x.dim()}D input tensor.\n"
            "Supported combinations for non-constant padding:\n  - 2D or 3D input: padding size = 2 (pads last "
            "dimension)\n  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)"
            "\n  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    for at in range(len(pad) // 2):
        n, before, behind = x._shape[-1 - at], pad[2 * at], pad[2 * at + 1]
        if mode == "reflect" and max(before, behind) >= n:
            raise RuntimeError(
                f"Argument #{4 + 2 * at}: Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({before}, {behind}) at dimension {x.dim() - 1 - at} of input {list(x._shape)}"
            )
        if mode == "circular" and max(before, behind) > n:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if n + before + behind < 1:
            raise RuntimeError(f"input (W: {n}) is too small. Calculated output W: {n + before + behind}")


def _around(n: int, before: int, behind: int, mode: str) -> Taps:
    """Which elements are where after padding a dimension."""
    inner = np.arange(n)[max(-before, 0) : n - max(-behind, 0)]
    widths = (max(before, 0), max(behind, 0))
    options: Any = {"mode": _NUMPY[mode]}
    return single(n, np.pad(inner, widths, **options))


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:  # noqa: A002
    """Adds elements at the edges, or cuts some off.

    Args:
        input: the tensor.
        pad: how many before and behind the last dimension, the one before it, …; negative: cut off.
        mode: "constant", "reflect": as in a mirror on the last element, "replicate": the last element, or "circular":
            those of the other end.
        value: of the new elements, where they are constant; None: 0.

    Raises:
        RuntimeError: not pairs, too many, or less than nothing would be left.
        NotImplementedError: another mode, or not of one to three dimensions of (N, C, …) or (C, …).
    """
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * input.dim():
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {input.dim()}"
        )
    given = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    if mode != "constant":
        _check_mode(input, pad, mode)
        sizes = input._shape[input.dim() - len(given) :]
        return taken(input, tuple(_around(n, *w, mode) for n, w in zip(sizes, reversed(given), strict=True)))
    widths = ((0, 0),) * (input.dim() - len(given)) + tuple(reversed(given))
    for n, (before, behind) in zip(input._shape, widths, strict=True):
        if n + before + behind < 0 or n + min(before, 0) + min(behind, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
    return _op(PAD, (input,), widths, 0 if value is None else value)
