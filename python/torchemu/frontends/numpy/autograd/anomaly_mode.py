"""torch.autograd.anomaly_mode: errors of a backward pass say where in the program the failing operation was called."""

from __future__ import annotations

import warnings
from typing import Any

from torchemu.frontends.numpy._autograd import state

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:  # noqa: N801 (PyTorch's names)
    """Turns the detection of anomalies on or off, from the call on; as a context manager until its end.

    Args:
        mode: whether nodes know where they were recorded, and errors say it.
        check_nan: whether NaN among gradients is an error. The host waits for them.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        own = state.current()
        self._before = own.anomaly
        own.anomaly = state.Anomaly(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        state.current().anomaly = self._before


class detect_anomaly:  # noqa: N801
    """In its block, anomalies are detected.

    Args:
        check_nan: as for set_detect_anomaly.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self._mode = set_detect_anomaly(True, self._check_nan)

    def __exit__(self, *_: Any) -> None:
        self._mode.__exit__()


def is_anomaly_enabled() -> bool:
    """Whether anomalies are detected."""
    return state.current().anomaly.on


def is_anomaly_check_nan_enabled() -> bool:
    """Whether NaN among gradients is an error then."""
    return state.current().anomaly.check_nan
