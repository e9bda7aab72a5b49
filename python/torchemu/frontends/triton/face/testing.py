"""Timing of functions, in simulated time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.frontends.triton._placeholders import placeholders

_REPEATS = 5


def do_bench(
    fn: Callable[[], Any],
    warmup: int = 25,
    rep: int = 100,
    grad_to_none: Any = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """The simulated milliseconds of a function that launches kernels. Repetitions take the same time: there are few.

    Args:
        fn: the function.
        warmup, rep: not needed here.
        quantiles: those of the times that are wanted; None for one number.
        return_mode: min, max, mean, median or all.
    """
    context = runtime.current()
    fn()
    times = []
    for _ in range(_REPEATS):
        start = Handle(go.StreamRecord(context.stream))
        fn()
        stop = Handle(go.StreamRecord(context.stream))
        context.synchronize()
        context.wait(stop.number)
        times.append((go.EventTime(stop.number) - go.EventTime(start.number)) / 1e9)
    if quantiles is not None:
        found = np.quantile(times, quantiles).tolist()
        return found[0] if len(found) == 1 else found
    if return_mode == "all":
        return times
    return float(getattr(np, return_mode)(times))


do_bench_cudagraph = do_bench


def assert_close(x: Any, y: Any, atol: float | None = None, rtol: float | None = None, err_msg: str = "") -> None:
    """Compares two arrays or tensors.

    Raises:
        AssertionError: they differ.
    """
    a, b = (np.asarray(v.cpu().float().numpy() if hasattr(v, "cpu") else v) for v in (x, y))
    np.testing.assert_allclose(
        a, b, atol=1e-2 if atol is None else atol, rtol=0 if rtol is None else rtol, err_msg=err_msg
    )


__getattr__ = placeholders("triton.testing")
