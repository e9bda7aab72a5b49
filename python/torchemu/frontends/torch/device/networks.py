"""Recurrent networks: as products and pointwise operations, with and without elements."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torchemu.frontends.torch.device.patches import Replacements

_VF: Any = torch._VF


def put(replaced: Replacements) -> None:
    """Lets no library of the CPU's run them as a whole: their products would have no cost."""
    for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        replaced.put(type(_VF), name, staticmethod(_apart(getattr(_VF, name))))


def _apart(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        before = torch._C._get_mkldnn_enabled()
        torch._C._set_mkldnn_enabled(False)
        try:
            return original(*args, **kwargs)
        finally:
            torch._C._set_mkldnn_enabled(before)

    return call
