"""Time of a program's own work, which is added up until it has to be seen from outside."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rates:
    """The speed of a multiprocessor. A PE of the topology is one.

    Attributes:
        matrix: picoseconds of an operation of the matrix unit, by the bits of an element.
        vector: picoseconds of a byte that an instruction makes.
        memory: picoseconds of a byte from or to memory.
        latency: of memory, in picoseconds.
        barrier: of a block's threads, in picoseconds.
    """

    matrix: dict[int, float]
    vector: float
    memory: float
    latency: int
    barrier: int = 20_000

    @classmethod
    def of_core(cls, rates: list[int]) -> Rates:
        """Makes them of what go.PrimRates gives."""
        f8, f16, f32, vector, bandwidth, latency, pes, _ = rates
        second = 1e12
        matrix = {8: second / f8, 16: second / f16, 32: second / f32, 64: 2 * second / f32}
        return cls(matrix, second / (4 * vector), second * pes / bandwidth, latency)


class Account:
    """The work of a program since it was last seen.

    Attributes:
        made: bytes of results.
        moved: bytes from and to memory.
        products: picoseconds of the matrix unit.
        loads: whether it has loaded anything.
        spent: picoseconds of anything else.
    """

    __slots__ = ("loads", "made", "moved", "products", "spent")

    def __init__(self) -> None:
        self.made = self.moved = self.spent = 0
        self.products = 0.0
        self.loads = False

    def settle(self, rates: Rates, least: int = 1) -> int:
        """Returns the picoseconds of all of it, and begins anew, unless they are too few: memory works beside
        arithmetic."""
        moved, made = self.moved * rates.memory, self.products + self.made * rates.vector
        time = int(moved if moved >= made else made) + self.spent + (rates.latency if self.loads else 0)
        if time < least:
            return 0
        self.made = self.moved = self.spent = 0
        self.products, self.loads = 0.0, False
        return time


_present = Account()


def present() -> Account:
    """Returns the account of what runs."""
    return _present


def use(account: Account) -> None:
    """Makes an account that of what runs."""
    global _present
    _present = account


def spend(nbytes: int) -> None:
    """Adds the making of a result of so many bytes."""
    _present.made += nbytes
