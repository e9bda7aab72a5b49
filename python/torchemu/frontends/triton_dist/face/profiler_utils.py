"""triton_dist.profiler_utils: times of functions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from torchemu.frontends.triton._placeholders import placeholders


def perf_func(func: Callable[[], Any], iters: int, warmup_iters: int) -> tuple[Any, float]:
    """Calls a function again and again, and returns what it gave last and the milliseconds of a call, by events.

    Args:
        func: the function.
        iters: calls that are timed.
        warmup_iters: calls before these.
    """
    import torch

    output = None
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(warmup_iters):
        output = func()
    torch.cuda.synchronize()
    start.record()
    for _ in range(iters):
        output = func()
    stop.record()
    torch.cuda.synchronize()
    return output, start.elapsed_time(stop) / iters


@contextlib.contextmanager
def group_profile(name: str | None = None, do_prof: bool = True, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Does nothing: ``torchemu run --trace`` records a run."""
    yield


@contextlib.contextmanager
def get_torch_prof_ctx(do_prof: bool = False) -> Iterator[None]:
    """Does nothing."""
    yield


__getattr__ = placeholders("triton_dist.profiler_utils")
