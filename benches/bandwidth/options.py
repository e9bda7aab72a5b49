"""Options of a measurement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """A measurement; the defaults are those of the command line."""

    collectives: tuple[str, ...] = ()
    begin: int = 1 << 10
    end: int = 16 << 20
    factor: int = 4
    step: int = 0  # bytes; instead of the factor, if not 0
    dtype: str = "float"
    op: str = "sum"
    root: int = 0
    iters: int = 1
    warmup: int = 0
    check: bool = True
    threads: int = 1
    ranks: int = 0  # of each thread; 0 for the SIPs of the topology
    plot: str = ""

    def sizes(self) -> Iterator[int]:
        """The sizes of the sweep, in bytes."""
        size = self.begin
        while size <= self.end:
            yield size
            size = size + self.step if self.step else size * self.factor
