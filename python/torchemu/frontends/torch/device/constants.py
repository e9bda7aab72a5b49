"""Constants of scripts: tensors, of which Python hears the numbers. An operation that it calls wants the tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_REFUSED = "Expected a value of type 'Tensor' for argument"


def is_refused(error: RuntimeError) -> bool:
    """Reports whether an operation has refused a number in the place of a tensor."""
    return _REFUSED in str(error)


def as_tensors(func: Any, args: Sequence[Any]) -> list[Any]:
    """Returns an operation's arguments with tensors where it has numbers in their place."""
    wants = [isinstance(argument.type, torch.TensorType) for argument in func._schema.arguments]
    return [
        _tensor(arg) if tensor and isinstance(arg, _NUMBERS) else arg for arg, tensor in zip(args, wants, strict=False)
    ]


def _tensor(number: Any) -> torch.Tensor:
    return torch.tensor(number, dtype=_WIDEST.get(type(number)))


_NUMBERS = (bool, int, float, complex)
_WIDEST = {float: torch.float64, complex: torch.complex128}
