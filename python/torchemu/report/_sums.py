"""Sums over a run, for reports."""

from __future__ import annotations

from dataclasses import dataclass

from torchemu.report._analysis import (
    Collective,
    KernelSum,
    Link,
    Operation,
    Shares,
    collectives,
    kernels,
    links,
    operations,
    shares,
)
from torchemu.report._critical import Part, Piece, critical_path, parts
from torchemu.report._load import Run


@dataclass(frozen=True)
class Sums:
    """The figures of a run.

    Attributes:
        collectives: in the order of their ends.
        slowest: the same, the longest first.
        path: the critical path.
        path_parts: sums over it.
    """

    shares: list[Shares]
    collectives: list[Collective]
    slowest: list[Collective]
    operations: list[Operation]
    kernels: list[KernelSum]
    path: list[Piece]
    path_parts: list[Part]
    links: list[Link]


def sums(run: Run) -> Sums:
    """Adds up a run."""
    found, path = collectives(run), critical_path(run)
    return Sums(
        shares=shares(run),
        collectives=found,
        slowest=sorted(found, key=lambda c: (-c.time, c.end, c.group, c.number)),
        operations=operations(found),
        kernels=kernels(run),
        path=path,
        path_parts=parts(path),
        links=links(run),
    )
