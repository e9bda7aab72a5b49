"""Generators of random numbers on simulated devices: a seed and an offset, as CUDA's are.

The numbers themselves are the CPU's: each operation draws from a generator that the device's seed and offset seed.
"""

from __future__ import annotations

import functools
import itertools
import secrets
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from torchemu.frontends.torch.device import places, visible
from torchemu.frontends.torch.device.ground import RankLocal
from torchemu.frontends.torch.device.places import HOST

_MARK = 0x7E << 56
"""In the seed of a CPU generator that stands for a device's: so that it is known again when C++ hands it on."""

_FIRST_SEED = 67280421310721
"""With which PyTorch's default generators begin."""

_serial = itertools.count()
_by_mark: weakref.WeakValueDictionary[int, Generator] = weakref.WeakValueDictionary()
_CPU: Any = torch._C.Generator
_CPU_KIND: Any = type(_CPU)


class _Kind(_CPU_KIND):
    def __instancecheck__(cls, value: object) -> bool:  # noqa: N805 (a class of classes)
        return isinstance(value, _CPU)


class Generator(_CPU, metaclass=_Kind):
    """torch.Generator: of the CPU as PyTorch has it, or of a simulated device.

    Args:
        device: whose it is.

    Raises:
        RuntimeError: PyTorch has no generator for the device.
    """

    def __new__(cls, device: Any = "cpu") -> Any:
        device = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
        if not places.is_simulated(device):
            return _CPU(device)
        generator = super().__new__(cls)
        generator._mark = _MARK + next(_serial)
        _CPU.manual_seed(generator, generator._mark)
        generator._device = device
        generator._seed, generator._offset = _FIRST_SEED, 0
        _by_mark[generator._mark] = generator
        return generator

    @property
    def device(self) -> torch.device:
        """Whose it is."""
        found: torch.device = self._device
        return found

    def manual_seed(self, seed: int) -> Generator:
        """Begins anew with a seed of 64 bits, which may be negative."""
        self._seed, self._offset = int(seed) & (2**64 - 1), 0
        return self

    def seed(self) -> int:
        """Begins anew with a seed that nobody knows, and returns it."""
        self.manual_seed(secrets.randbits(52))
        return self._seed

    def initial_seed(self) -> int:
        """Returns the seed."""
        return self._seed

    def get_offset(self) -> int:
        """Returns how many numbers have been drawn, in fours."""
        return self._offset

    def set_offset(self, offset: int) -> None:
        """Goes to where so many numbers have been drawn."""
        self._offset = int(offset)

    def get_state(self) -> torch.Tensor:
        """Returns seed and offset: 16 bytes, on the host. No mode sees how they are made, as with PyTorch's in C++."""
        values = [self._seed - (self._seed >> 63 << 64), self._offset]
        with _disable_current_modes():
            return torch.tensor(values, dtype=torch.int64, device=HOST).view(torch.uint8)

    def set_state(self, state: torch.Tensor) -> Generator:
        """Goes on from a state that get_state returned.

        Raises:
            RuntimeError: it is none.
        """
        if state.numel() not in (8, 16) or state.dtype != torch.uint8:
            raise RuntimeError("RNG state is wrong size")
        with _disable_current_modes():
            values = state.detach().cpu().clone().view(torch.int64).tolist()
        self._seed, self._offset = values[0] & (2**64 - 1), (values[1:] or [0])[0]
        return self

    graphsafe_get_state = clone_state = get_state
    graphsafe_set_state = set_state

    def __reduce__(self) -> Any:
        return _restored, (str(self.device), self.get_state())

    def drawn(self, numel: int) -> Any:
        """Returns a generator of the CPU for an operation that draws so many numbers, and goes on behind these."""
        mixed = (self._seed * 0x9E3779B97F4A7C15 + self._offset * 0xBF58476D1CE4E5B9 + 1) & (2**63 - 1)
        self._offset += (numel + 3) // 4 * 4
        return _SCRATCH.manual_seed(mixed)


_SCRATCH = _CPU()


def _restored(device: str, state: torch.Tensor) -> Any:
    return Generator(device).set_state(state)


_DEFAULTS: RankLocal[dict[int, Any]] = RankLocal(dict)


def default(number: int) -> Generator:
    """Returns the generator of a device of the running rank."""
    generators = _DEFAULTS.get()
    if number not in generators:
        generators[number] = Generator(torch.device("cuda", number))
    found: Generator = generators[number]
    return found


class Defaults(Sequence[Generator]):
    """torch.cuda.default_generators: one for each device of the running rank."""

    def __getitem__(self, number: Any) -> Any:
        if not 0 <= number < visible.count():
            raise IndexError("tuple index out of range")
        return default(number)

    def __len__(self) -> int:
        return visible.count()


def behind(generator: Any) -> Generator | None:
    """Returns the device's generator for which a generator stands that C++ has handed on; None for one of the CPU."""
    return _by_mark.get(_CPU.initial_seed(generator))


def given(region: Callable[..., Any]) -> Callable[..., Any]:
    """Makes what DTensor draws numbers in, with a generator that a program has passed, hear of the device's."""

    @functools.wraps(region)
    def call(tracker: Any, spec: Any, generator: Any = None) -> Any:
        return region(tracker, spec, generator if generator is None else behind(generator) or generator)

    return call


def check_host(kwargs: dict[str, Any]) -> None:
    """Raises RuntimeError where an operation of the host is given a device's generator."""
    generator = kwargs.get("generator")
    if generator is not None and behind(generator) is not None:
        raise RuntimeError("Expected a 'cpu' device type for generator but found 'cuda'")


def computed(op: Any, args: Sequence[Any], kwargs: dict[str, Any], like: torch.Tensor | None) -> Any:
    """Calls an operation that draws random numbers on a device.

    Raises:
        RuntimeError: it is given a generator of the CPU.
    """
    given = kwargs.get("generator")
    if given is None:
        source: Generator | None = default(places.here().number)
    else:
        source = behind(given)
        if source is None:
            raise RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'")
    assert source is not None
    generator = source.drawn(_drawn(args, like))
    if op.seeded is not None:
        return op.seeded._op(*args, **{**kwargs, "generator": generator})
    before = torch.default_generator.get_state()
    torch.default_generator.set_state(generator.get_state())
    try:
        return op.compute(*args, **kwargs)
    finally:
        torch.default_generator.set_state(before)


def passed(args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Goes on behind the numbers that an operation would draw."""
    given = kwargs.get("generator")
    source = default(places.here().number) if given is None else behind(given)
    if source is not None:
        source.drawn(_drawn(args, args[0] if args and isinstance(args[0], torch.Tensor) else None))


def _drawn(args: Sequence[Any], like: torch.Tensor | None) -> int:
    """Counts the numbers that a call draws."""
    if like is not None:
        return like.numel()
    sizes = next((a for a in args if isinstance(a, (list, tuple))), ())
    n = 1
    for size in sizes:
        n *= int(size)
    return n
