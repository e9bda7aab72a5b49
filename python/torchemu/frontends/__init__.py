"""Front ends: the packages that programs import, over the process groups and device programs of torchemu.

Whoever loads one can open Worlds whose ccl.yaml names kernels.
"""

from __future__ import annotations

from collections.abc import Mapping

from torchemu import runtime


def _load_kernels(world: runtime.World, places: Mapping[str, tuple[str, str, str, str]]) -> None:
    from torchemu.language import _collective, _machine  # takes its time, and few files name kernels

    machine = _machine.machine_of(world)
    for collective, place in places.items():
        machine.kernels[collective] = _collective.load(collective, *place)


runtime.load_kernels_by(_load_kernels)
