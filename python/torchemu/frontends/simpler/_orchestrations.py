"""Orchestrations: what a chip does with a task, by the kernels that it has for it.

One of a single kernel passes its arguments on, as the published ones do, unless there is a file in Python beside its
source, as for kernels. One of several has to have that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchemu.frontends.pto._program import running
from torchemu.frontends.simpler import _kernels
from torchemu.frontends.simpler._callables import ChipCallable
from torchemu.frontends.simpler._kernels import Kernel, Place, PythonKernel


@dataclass(frozen=True)
class Orchestrated:
    """A function in Python that submits kernels in Python, on one chip.

    Attributes:
        name: the orchestration's.
        entry: what is called with the task's arguments.
        kernels: by the numbers that it knows them by.
    """

    name: str
    entry: Callable[..., None]
    kernels: Mapping[int, Callable[..., None]]

    def submit(self, place: Place) -> int:
        """As Kernel.submit."""
        return place.run(self._call)

    def _call(self, args: list[Any]) -> None:
        running().kernels = dict(self.kernels)
        self.entry(args)


def kernel_of(chip: ChipCallable) -> Kernel:
    """What runs when a chip is told to do it.

    Raises:
        ValueError: one of its kernels was not compiled; there are several, and there is no orchestration in Python or
            not all of them are in Python.
        RuntimeError: the file beside the source has no function of the orchestration's name.
    """
    kernels = {number: _kernels.kernel_of(core.binary) for number, core in chip.children}
    twin = _kernels.orchestration_of(chip.binary)
    if twin is None or not twin.is_file():
        if len(kernels) == 1:
            return next(iter(kernels.values()))
        raise ValueError(_unknown(chip, twin))
    entries: dict[int, Callable[..., None]] = {}
    for number, kernel in kernels.items():
        if not isinstance(kernel, PythonKernel):
            raise ValueError(
                f"{chip.func_name}: its orchestration is in Python, {twin}, and so have to be its kernels: "
                f"{kernel.name} is not"
            )
        entries[number] = kernel.entry
    return Orchestrated(chip.func_name, _kernels.loaded(twin, chip.func_name, "the orchestration"), entries)


def _unknown(chip: ChipCallable, twin: Path | None) -> str:
    where = "in a file beside its source" if twin is None else f"in {twin}"
    return (
        f"{chip.func_name}: {len(chip.children)} kernels, and what an orchestration in C++ does with them is not known "
        f"here; write {chip.func_name}(args) in Python, {where}, with rt_submit_aiv_task(func_id, args) of torchemu.pto"
    )
