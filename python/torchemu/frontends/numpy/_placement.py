"""DPPolicy: how a tensor lies on the cubes and PEs of one SIP."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DPPolicy:
    """The placement of a tensor within a device.

    Args:
        cube: "replicate" (each cube has all of it), "column_wise" (the last dimension is split over the cubes) or
            "row_wise" (the first is).
        pe: the same, for the PEs of a cube, within the cube's part.
        num_cubes: how many cubes to use, from cube 0 on; None for all.
        num_pes: how many PEs of each cube to use, from PE 0 on; None for all.

    The names, and the numbers against the topology, are checked when a tensor is made with the policy.
    """

    cube: str = "replicate"
    pe: str = "replicate"
    num_cubes: int | None = None
    num_pes: int | None = None

    def __post_init__(self) -> None:
        for name in ("num_cubes", "num_pes"):
            number = getattr(self, name)
            if number is not None and (not isinstance(number, int) or number < 1):
                raise ValueError(f"{name} must be a positive integer, or None for all; not {number!r}")


WHOLE = DPPolicy(num_cubes=1, num_pes=1)
"""The placement of a tensor without a policy: all of it is on PE 0 of cube 0."""
