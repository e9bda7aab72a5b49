"""Arguments of layers' functions: tensors."""

from __future__ import annotations

from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor


def check_tensor(function: str, argument: str, position: int, value: Any) -> None:
    """Raises:
    TypeError: it is something else.
    """
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{function}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}"
        )


def within(indices: Tensor, size: int) -> bool:
    """Reports whether all elements are from 0 to size - 1. They are looked at as soon as they are known, which costs
    nothing: a device would find out in the kernel that uses them."""
    numbers = indices._read()
    return not numbers.size or bool(numbers.min() >= 0 and numbers.max() < size)


def check_optional(function: str, argument: str, position: int, value: Any) -> None:
    """Acts as check_tensor, but None will do."""
    if value is not None:
        check_tensor(function, argument, position, value)
