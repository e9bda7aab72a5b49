"""Answers to PyTorch's own questions about elements, in a run without data: that all is as it is in most programs.

A program that looks at elements itself is refused, since its way would depend on them. Where PyTorch's modules look,
nothing but a part of their time does.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.nn.modules import _functions, transformer

from torchemu.frontends.torch.device.patches import Replacements
from torchemu.frontends.torch.device.places import META


class _Thread(threading.local):
    are_made = False


_thread = _Thread()  # each is one rank's


def put(replaced: Replacements) -> None:
    """Has those functions of PyTorch's answered that ask: no rank's batch is empty, and a square mask is causal."""
    forward = _functions.SyncBatchNorm.forward
    replaced.put(_functions.SyncBatchNorm, "forward", staticmethod(_answered(forward)))
    replaced.put(transformer, "_detect_is_causal_mask", _answered(transformer._detect_is_causal_mask))


def _answered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes all that a function asks be true."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _made():
            return function(*args, **kwargs)

    return call


@contextlib.contextmanager
def _made() -> Iterator[None]:
    before, _thread.are_made = _thread.are_made, True
    try:
        yield
    finally:
        _thread.are_made = before


def are_made() -> bool:
    """Reports whether the calling thread is in a function whose questions are answered: each condition holds."""
    return _thread.are_made


def picked(name: str, args: Sequence[Any]) -> torch.Tensor | None:
    """Returns all rows of a tensor for a call that picks those of them for which a condition holds; None for others."""
    if not _thread.are_made or name != "index":
        return None
    tensor, (mask, *others) = args
    if others or mask.dim() != 1:
        return None
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=META)
