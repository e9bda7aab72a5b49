"""torch.random: the rank's generator of random numbers."""

from __future__ import annotations

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.generator import Generator, default_generator, seed_devices


def manual_seed(seed: int) -> Generator:
    """Starts the rank's random numbers again from a seed, and those of its devices."""
    seeded = default_generator().manual_seed(seed)
    seed_devices(seed)
    return seeded


def seed() -> int:
    """Starts the rank's random numbers again from another seed, which is returned."""
    seed = default_generator().seed()
    seed_devices(seed)
    return seed


def initial_seed() -> int:
    """The seed that the rank's random numbers started from."""
    return default_generator().initial_seed()


def get_rng_state() -> Tensor:
    """Returns where the rank's random numbers have come to, for set_rng_state."""
    return default_generator().get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Goes on with the rank's random numbers from where get_rng_state was called."""
    default_generator().set_state(new_state)
