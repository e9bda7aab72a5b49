"""A module that the tests of torch.nn share, and how they ask what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import torchemu as torch
from torchemu import nn


class Pair(nn.Module):
    """Two linear layers, a buffer that is saved and one that is not."""

    def __init__(self, early: Any = None) -> None:
        if early is not None:
            self.early = early
        super().__init__()
        self.first, self.second = nn.Linear(2, 3), nn.Linear(3, 1, bias=False)
        self.register_buffer("count", torch.zeros(2))
        self.register_buffer("scratch", torch.ones(1), persistent=False)

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return self.second(self.first(x)) * scale


def refused(call: Callable[[], Any]) -> tuple[str, str]:
    """The type of the exception, and what it says."""
    with pytest.raises(Exception) as caught:
        call()
    error = caught.value
    return type(error).__name__, error.args[0] if error.args else ""
