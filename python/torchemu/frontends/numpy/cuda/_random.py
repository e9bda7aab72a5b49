"""torch.cuda.random: the random numbers of a rank's devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchemu.frontends.numpy import _settings, ahbm
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.generator import Generator, generator_on, seed_devices

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def _generator(device: Any = "cuda") -> Generator:
    return generator_on(_settings.resolved("cuda" if device is None else device))


def manual_seed(seed: int) -> None:
    """Starts the current device's random numbers again from a seed."""
    _generator().manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Starts the random numbers of all devices again from a seed."""
    _generator().manual_seed(seed)
    seed_devices(seed)


def seed() -> None:
    """Starts the current device's random numbers again from another seed."""
    _generator().seed()


def seed_all() -> None:
    """Starts the random numbers of all devices again from another seed."""
    seed_devices(_generator().seed())


def initial_seed() -> int:
    """The seed that the current device's random numbers started from."""
    return _generator().initial_seed()


def get_rng_state(device: Any = "cuda") -> Tensor:
    """Returns where a device's random numbers have come to, for set_rng_state."""
    return _generator(device).get_state()


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Goes on with a device's random numbers from where get_rng_state was called."""
    _generator(device).set_state(new_state)


def get_rng_state_all() -> list[Tensor]:
    """Returns the state of each device."""
    return [get_rng_state(index) for index in range(ahbm.device_count())]


def set_rng_state_all(new_states: Sequence[Tensor]) -> None:
    """Sets the state of each device."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
