"""random and numpy.random, for each rank its own."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from torchemu.launch.patches import current, replace
from torchemu.runtime import seeds


class RandomState:
    """The generators behind the functions of ``random`` and ``numpy.random`` in one rank.

    Args:
        key: the same key gives the same numbers, whatever other ranks do.
    """

    def __init__(self, key: str) -> None:
        self._key = key

    @functools.cached_property
    def python(self) -> random.Random:
        """Returns that of ``random``."""
        return random.Random(self._key)

    @functools.cached_property
    def _numpy_seeds(self) -> np.random.SeedSequence:
        return np.random.SeedSequence(int.from_bytes(hashlib.sha256(self._key.encode()).digest()))

    @functools.cached_property
    def numpy(self) -> np.random.RandomState:
        """Returns that of the functions of ``numpy.random``."""
        return np.random.RandomState(np.random.MT19937(self._numpy_seeds))

    def numpy_generator(self) -> np.random.Generator:
        """Returns the generator of ``numpy.random.default_rng()``: another one at every call."""
        return np.random.Generator(np.random.PCG64(self._numpy_seeds.spawn(1)[0]))


def install(stack: contextlib.ExitStack) -> None:
    """Makes the functions those of the running rank, until the stack is closed."""
    for name, function in vars(random).items():
        if isinstance(getattr(function, "__self__", None), random.Random):
            replace(stack, random, name, _ranks_own(function, "python", name))
    for name in np.random.__all__:
        function = getattr(np.random, name)
        method = {"ranf": "random_sample", "sample": "random_sample"}.get(name, name)
        if not isinstance(function, type) and hasattr(np.random.RandomState, method):
            replace(stack, np.random, name, _ranks_own(function, "numpy", method))
    replace(stack, np.random, "default_rng", _default_rng(np.random.default_rng))


def _ranks_own(function: Callable[..., Any], kind: str, method: str) -> Callable[..., Any]:
    """The function, as a method of the running rank's generator of a kind."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        process = current()
        if method == "seed":
            for hear in seeds.hearers:
                hear(functools.partial(call, *args, **kwargs))
        own = function if process is None else getattr(getattr(process.random, kind), method)
        return own(*args, **kwargs)

    return call


def _default_rng(real: Callable[..., np.random.Generator]) -> Callable[..., np.random.Generator]:
    @functools.wraps(real)
    def default_rng(seed: Any = None) -> np.random.Generator:
        process = current()
        return real(seed) if process is None or seed is not None else process.random.numpy_generator()

    return default_rng
