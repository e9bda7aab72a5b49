"""torch.cuda: the simulated devices under the name that programs written for GPUs use. See torchemu.ahbm."""

from __future__ import annotations

from typing import Any

from torchemu import ahbm
from torchemu._tensor.memory import old_types
from torchemu.random import get_rng_state as _get_rng_state
from torchemu.random import initial_seed, manual_seed, seed
from torchemu.random import set_rng_state as _set_rng_state

__all__ = ["get_rng_state", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all", "set_rng_state"]

manual_seed_all, seed_all = manual_seed, seed
globals().update(old_types("cuda"))


def get_rng_state(device: Any = None) -> Any:
    """torch.get_rng_state: a rank has one generator for all devices."""
    return _get_rng_state()


def set_rng_state(new_state: Any, device: Any = None) -> None:
    """torch.set_rng_state: a rank has one generator for all devices."""
    _set_rng_state(new_state)


def __getattr__(name: str) -> Any:
    """All else is torch.ahbm's."""
    return getattr(ahbm, name)
