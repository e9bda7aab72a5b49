"""pad: more elements at the edges, or fewer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchemu._autograd.derivative import Derivative, Partial
from torchemu._tensor.conversion import converted
from torchemu._tensor.core import Tensor
from torchemu._tensor.dispatch import Op, _op, no_flops
from torchemu._unsupported import unsupported

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


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:  # noqa: A002
    """Adds elements at the edges, or cuts some off.

    Args:
        input: the tensor.
        pad: how many before and behind the last dimension, the one before it, …; negative: cut off.
        mode: "constant" only.
        value: of the new elements; None: 0.

    Raises:
        RuntimeError: not pairs, too many, or less than nothing would be left.
        NotImplementedError: another mode.
    """
    if mode in ("reflect", "replicate", "circular"):
        raise unsupported(f"torch.nn.functional.pad(mode={mode!r})", "only 'constant' is")
    if mode != "constant":
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * input.dim():
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {input.dim()}"
        )
    given = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    widths = ((0, 0),) * (input.dim() - len(given)) + tuple(reversed(given))
    for n, (before, behind) in zip(input._shape, widths, strict=True):
        if n + before + behind < 0 or n + min(before, 0) + min(behind, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
    return _op(PAD, (input,), widths, 0 if value is None else value)
