"""Generator: the source of random numbers. It is PyTorch's for CPUs, the Mersenne Twister MT19937, so that a program
with a seed gets the numbers that it gets there."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from torchemu import runtime
from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._device import device as Device  # noqa: N812 (device is an attribute's name)

if TYPE_CHECKING:
    from torchemu.frontends.numpy._tensor.core import Tensor

FIRST_SEED = 67280421310721
"""PyTorch's seed where none is given; here with the rank added, for ranks must not have equal numbers by accident."""

_LAYOUT = struct.Struct("<QqBd")  # seed, position in the key, whether a normal number is left, and which
_KEY = 624
_CHUNK = 1 << 13  # numbers that are made together: they and the words that they are made of stay in the cache


class Generator:
    """Random numbers, the same ones after the same seed.

    Args:
        device: means nothing here: the numbers are the same on all devices.

    Attributes:
        device: as given; "cpu" otherwise.
    """

    def __init__(self, device: Any = "cpu") -> None:
        self.device = Device(device)
        self._bits: Any = np.random.MT19937(0)
        self._spare: float | None = None  # of two normal numbers the one that has not been given yet
        self.manual_seed(FIRST_SEED)

    def manual_seed(self, seed: int) -> Generator:
        """Starts again from a seed.

        Raises:
            ValueError: the seed has more than 64 bits.
        """
        number = int(seed)
        if not -(1 << 63) <= number < 1 << 64:
            raise ValueError(f"Overflow when unpacking long: the seed {number} has more than 64 bits")
        self._seed = number % (1 << 64)
        self._spare = None
        self._bits.state = np.random.RandomState(self._seed % (1 << 32)).get_state(legacy=False)
        return self

    def initial_seed(self) -> int:
        """The seed that it started from."""
        return self._seed

    def seed(self) -> int:
        """Starts again from another seed, which is returned: not from one by chance, for runs must repeat."""
        return self.manual_seed(self._seed * 6364136223846793005 + 1442695040888963407 & (1 << 63) - 1)._seed

    def get_state(self) -> Tensor:
        """Returns what set_state goes on from, as a tensor of bytes."""
        from torchemu.frontends.numpy._tensor.from_data import frombuffer

        state = self._bits.state["state"]
        spare = self._spare is not None
        head = _LAYOUT.pack(self._seed, state["pos"], spare, self._spare or 0.0)
        return frombuffer(bytearray(head + state["key"].astype("<u4").tobytes()), dtype="uint8").cpu()

    def set_state(self, new_state: Tensor) -> Generator:
        """Goes on from where get_state was called.

        Raises:
            TypeError, RuntimeError: it is not what get_state returns.
        """
        raw = bytes(np.asarray(new_state))
        if new_state.dtype.name != "uint8":
            raise TypeError(f"expected a torch.ByteTensor, but got {new_state.type()}")
        if len(raw) != _LAYOUT.size + 4 * _KEY:
            raise RuntimeError(f"RNG state is wrong size: {len(raw)} bytes, not {_LAYOUT.size + 4 * _KEY}")
        self._seed, position, has_spare, spare = _LAYOUT.unpack_from(raw)
        self._spare = spare if has_spare else None
        key = np.frombuffer(raw, "<u4", offset=_LAYOUT.size).astype(np.uint32)
        self._bits.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": position}}
        return self

    def clone_state(self) -> Generator:
        """Another generator that goes on as this one does."""
        other = Generator(self.device)
        other._seed, other._spare, other._bits.state = self._seed, self._spare, self._bits.state
        return other

    # -- numbers

    def words(self, n: int) -> np.ndarray:
        """n times 32 random bits, as uint64."""
        return np.atleast_1d(self._bits.random_raw(n))

    def double_words(self, n: int) -> np.ndarray:
        """n times 64 random bits."""
        words = self.words(2 * n).reshape(n, 2)
        return words[:, 0] << np.uint64(32) | words[:, 1]

    def uniform(self, n: int, digits: int, low: float = 0.0, high: float = 1.0) -> np.ndarray:
        """n numbers in [low, high), of so many binary digits, as float32, or as float64 if they are more than 24."""
        words = self.double_words if digits > 24 else self.words
        numbers: Any = np.empty(n, np.float64 if digits > 24 else np.float32)
        first, width = numbers.dtype.type(low), numbers.dtype.type(high) - numbers.dtype.type(low)
        for start in range(0, n, _CHUNK):
            part = numbers[start : start + _CHUNK]
            part[...] = words(part.size) & np.uint64((1 << digits) - 1)
            part *= 2.0**-digits
            if (low, high) != (0, 1):  # in float64, for PyTorch's processors round the product and the sum once
                part[...] = np.multiply(part, width, dtype=np.float64) + np.float64(first)
        return numbers

    def normal(self, n: int, kind: str) -> np.ndarray:
        """n normal numbers, 16 at least, for a dtype: in blocks of 16, of which the last overlaps the one before."""
        digits = 53 if kind == "float64" else 24
        full = n // 16 * 16
        unused = n - full if kind in ("float32", "float64") else 0  # are drawn, but then the last block is
        numbers = _normal_blocks(self.uniform(full + unused, digits)[:full])
        if n == full:
            return numbers
        return np.concatenate([numbers[: n - 16], _normal_blocks(self.uniform(16, digits))])

    def single_normals(self, n: int) -> np.ndarray:
        """n normal numbers, made one after another."""
        return np.array([self._one_normal() for _ in range(n)], np.float64)

    def _one_normal(self) -> float:
        if self._spare is not None:
            number, self._spare = self._spare, None
            return number
        angle, distance = self.uniform(2, 53).tolist()
        radius = math.sqrt(-2 * math.log1p(-distance))
        self._spare = radius * math.sin(2 * math.pi * angle)
        return radius * math.cos(2 * math.pi * angle)


def _normal_blocks(uniform: np.ndarray) -> np.ndarray:
    """Box and Muller's normal numbers, in each block of 16 from 8 radii and 8 angles."""
    blocks = uniform.reshape(-1, 2, 8)
    radius = np.sqrt(-2 * np.log(1 - blocks[:, 0]))
    angle = blocks.dtype.type(2 * math.pi) * blocks[:, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)


def default_generator() -> Generator:
    """The rank's, where a call names none."""
    settings = _settings.current()
    if settings.generator is None:
        settings.generator = Generator().manual_seed(FIRST_SEED + runtime.current().rank)
    return settings.generator


def generator_on(where: Device) -> Generator:
    """The one that numbers on a device come from: in a process, a device that is named has its own. Elsewhere the
    devices are what tensors are made on, and share the rank's."""
    if where.index is None or not where.is_sip or runtime.current().process is None:
        return default_generator()
    settings = _settings.current()
    found = settings.generators.get(where.index)
    if found is None:
        first = FIRST_SEED + runtime.current().rank
        found = settings.generators[where.index] = Generator(where)
        found.manual_seed(first if settings.device_seed is None else settings.device_seed)
    return found


def seed_devices(seed: int) -> None:
    """Starts the numbers of all the rank's devices again from a seed."""
    settings = _settings.current()
    settings.device_seed = seed
    for generator in settings.generators.values():
        generator.manual_seed(seed)
