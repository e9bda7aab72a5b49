"""torch.amp: mixed precision by itself, which there is not. A program that says it is disabled runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchemu._unsupported import unsupported

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_INSTEAD = "dtypes are those of the operands; convert models and inputs with .to(torch.bfloat16), or pass enabled=False"


class autocast:  # noqa: N801 (PyTorch's name)
    """A context manager and decorator that leaves dtypes alone.

    Args:
        device_type, dtype, cache_enabled: accepted.
        enabled: must be False.

    Raises:
        NotImplementedError: enabled.
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if enabled:
            raise unsupported("torch.autocast", _INSTEAD)

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function


class GradScaler:
    """Scales losses by one: nothing needs more.

    Args:
        device, init_scale, growth_factor, backoff_factor, growth_interval: accepted.
        enabled: must be False.

    Raises:
        NotImplementedError: enabled.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled:
            raise unsupported("torch.amp.GradScaler", _INSTEAD)

    def scale(self, outputs: Any) -> Any:
        """The outputs."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Does nothing."""

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's step."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | None = None) -> None:
        """Does nothing."""

    def get_scale(self) -> float:
        """1."""
        return 1.0

    def is_enabled(self) -> bool:
        """False."""
        return False

    def state_dict(self) -> dict[str, Any]:
        """Empty."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Does nothing."""


def is_autocast_available(device_type: str) -> bool:
    """False."""
    return False


def custom_fwd(fwd: Callable[..., Any] | None = None, **options: Any) -> Callable[..., Any]:
    """The function as it is."""
    return functools.partial(custom_fwd, **options) if fwd is None else fwd


custom_bwd = custom_fwd
