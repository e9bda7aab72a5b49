"""torch._foreach_…: operations on the tensors of lists, one after another: each is a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchemu.frontends.numpy._tensor import elementwise, parametric, reductions
from torchemu.frontends.numpy._tensor.core import Tensor

_NAMES = (
    "abs acos add asin atan ceil clamp_max clamp_min cos cosh div erf erfc exp expm1 floor frac lerp lgamma log log10 "
    "log1p log2 mul neg pow reciprocal round rsqrt sigmoid sign sin sinh sqrt sub tan tanh trunc"
)


def _each(value: Any, count: int) -> Sequence[Any]:
    """One operand for each tensor: of a list its elements, else the same for all.

    Raises:
        RuntimeError: the list has another length.
    """
    if not isinstance(value, list | tuple):
        return [value] * count
    if len(value) != count:
        raise RuntimeError(f"Tensor lists must have the same number of tensors, got {count} and {len(value)}")
    return value


def _rows(lists: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """What each call is given.

    Raises:
        RuntimeError: no tensors, or lists of several lengths.
    """
    tensors = list(lists[0])
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return list(zip(tensors, *[_each(operand, len(tensors)) for operand in lists[1:]], strict=True))


def _mapped(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that calls another for each tensor, with an operand of other lists, or with one for all. In place it
    returns the list."""

    def call(self: Any, *operands: Any, **options: Any) -> Any:
        found = tuple([function(*row, **options) for row in _rows((self, *operands))])
        return self if name.endswith("_") else found

    call.__name__ = call.__qualname__ = f"_foreach_{name}"
    call.__doc__ = f"{name} of each tensor, with the operands of other lists, or with one for all."
    return call


def _weighed(name: str) -> Callable[..., Any]:
    """addcmul or addcdiv, whose factor may be one for each tensor."""

    def method(t: Tensor, first: Tensor, second: Tensor, value: Any) -> Tensor:
        result: Tensor = getattr(t, name)(first, second, value=value)
        return result

    mapped = _mapped(name, method)

    def call(self: Any, tensor1: Any, tensor2: Any, scalars: Any = 1, *, value: Any = None) -> Any:
        return mapped(self, tensor1, tensor2, scalars if value is None else value)

    call.__name__, call.__doc__ = f"_foreach_{name}", mapped.__doc__
    return call


def _larger(t: Tensor, other: Any) -> Tensor:
    return elementwise.maximum(t, other) if isinstance(other, Tensor) else parametric.clamp_min(t, other)


def _smaller(t: Tensor, other: Any) -> Tensor:
    return elementwise.minimum(t, other) if isinstance(other, Tensor) else parametric.clamp_max(t, other)


def _norm(t: Tensor, ord: float = 2, dtype: Any = None) -> Tensor:  # noqa: A002 (PyTorch's name)
    return reductions.norm(t, ord, dtype=dtype)


def _called(method: str) -> Callable[..., Any]:
    """A method of tensors as a function; methods are attached to the class later."""

    def call(t: Tensor, *operands: Any, **options: Any) -> Any:
        return getattr(t, method)(*operands, **options)

    return call


def functions() -> dict[str, Callable[..., Any]]:
    """All of them, by their names in torch."""
    names = [*_NAMES.split(), *[f"{name}_" for name in _NAMES.split()], "copy_", "zero_"]
    made = {f"_foreach_{name}": _mapped(name, _called(name)) for name in names}
    made |= {f"_foreach_{name}": _weighed(name) for name in ("addcdiv", "addcdiv_", "addcmul", "addcmul_")}
    for name, function in (("maximum", _larger), ("minimum", _smaller), ("norm", _norm)):
        made[f"_foreach_{name}"] = _mapped(name, function)
    return made
