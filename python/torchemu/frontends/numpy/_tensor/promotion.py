"""The dtype of an operation on several tensors or numbers; see torchemu.promotion."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchemu import promotion
from torchemu.dtypes import dtype
from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.promotion import can_cast, promote_types
from torchemu.promotion import depends_on_default as depends_on_default

__all__ = [
    "can_cast",
    "promote_types",
    "result_type",
]


def key(operand: Any) -> Any:
    """Returns what promotion looks at of an operand: the dtype of a tensor (marked if it has no dimensions), the type
    of a number.

    Raises:
        TypeError: neither a tensor nor a number.
    """
    if isinstance(operand, Tensor):
        return operand.dtype if operand._shape else operand.dtype.zero_dim
    if isinstance(operand, bool | np.bool_):
        return bool
    if isinstance(operand, int | np.integer):
        return int
    if isinstance(operand, float | np.floating):
        return float
    if isinstance(operand, complex | np.complexfloating):
        return complex
    raise TypeError(f"expected a Tensor or a number, not {type(operand).__name__}")


def of_keys(keys: tuple[Any, ...]) -> dtype:
    """Returns the dtype in which operands of these keys meet."""
    return promotion.of_keys(keys, _settings.get_default_dtype)


def of_value(number: Any) -> dtype:
    """The dtype that a number has by itself.

    Raises:
        TypeError: it is none.
    """
    return promotion.of_number(float if type(number) is float else key(number), _settings.get_default_dtype)


def result_type(tensor1: Any, tensor2: Any) -> dtype:
    """The dtype that an arithmetic operation on two tensors or numbers has."""
    return of_keys((key(tensor1), key(tensor2)))
