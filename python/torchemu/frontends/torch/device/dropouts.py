"""Dropout as CUDA has it: one kernel, which keeps a mask of bools for its gradient. The host's draws numbers of the
input's dtype and multiplies."""

from __future__ import annotations

import functools
from typing import Any

import torch

from torchemu.frontends.torch.device import norms, places
from torchemu.frontends.torch.device.patches import Replacements


def put(replaced: Replacements) -> None:
    """Puts it in place where programs and torch.nn call it."""
    original = torch.dropout

    @functools.wraps(original)
    def dropout(input: Any, p: float, train: bool) -> Any:  # noqa: A002 (PyTorch's name)
        if train and 0 < p < 1 and norms.is_plain_on_device(input) and input.numel():
            return torch.native_dropout(input, p, True)[0]
        with places.made_at(places.of(input)):  # vmap makes noise in C++, to which the input is the host's
            return original(input, p, train)

    replaced.put(torch, "dropout", dropout)
    replaced.put(type(torch._VF), "dropout", staticmethod(dropout))
