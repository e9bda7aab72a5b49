"""Dropout as CUDA has it: one kernel, which keeps a mask of bools for its gradient. The host's draws numbers of the
input's dtype and multiplies."""

from __future__ import annotations

import functools
from typing import Any

import torch

from torchemu.frontends.torch.device import places
from torchemu.frontends.torch.device.patches import Replacements, overridable


def put(replaced: Replacements) -> None:
    """Puts it in place where programs and torch.nn call it."""
    original = _placed(torch.dropout)

    @functools.wraps(original)
    def dropout(input: Any, p: float, train: bool) -> Any:  # noqa: A002 (PyTorch's name)
        if train and 0 < p < 1 and places.is_plain_on_device(input) and input.numel():
            return torch.native_dropout(input, p, True)[0]
        return original(input, p, train)

    _put(replaced, "dropout", dropout)
    for name in _OTHERS:
        _put(replaced, name, _placed(getattr(torch, name)))


_OTHERS = [
    f"{name}{end}" for name in ("feature_dropout", "alpha_dropout", "feature_alpha_dropout") for end in ("", "_")
]


def _put(replaced: Replacements, name: str, function: Any) -> None:
    new = overridable(function, getattr(torch, name))
    replaced.put(torch, name, new)
    replaced.put(type(torch._VF), name, staticmethod(new))


def _placed(original: Any) -> Any:
    """Makes noise where the input is: vmap's is made in C++, to which the input is the host's."""

    @functools.wraps(original)
    def call(input: Any, p: float, train: bool) -> Any:  # noqa: A002
        with places.made_at(places.of(input)):
            return original(input, p, train)

    return call
