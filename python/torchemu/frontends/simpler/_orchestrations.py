"""Orchestrations: what a chip does with a task, by the kernels that it has for it.

It is compiled, or in Python in a file beside its source. Where there is neither, one of a single kernel passes its
arguments on, as the published ones do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchemu.frontends.pto._compiled import CompiledOrchestration
from torchemu.frontends.pto._program import running
from torchemu.frontends.simpler import _kernels
from torchemu.frontends.simpler._callables import ChipCallable
from torchemu.frontends.simpler._kernels import Kernel, OrchestrationSource, Place, PythonKernel


@dataclass(frozen=True)
class Orchestrated:
    """A function that submits kernels, on one chip.

    Attributes:
        name: the orchestration's, or that of its only kernel.
        entry: what is called with the task's arguments.
        kernels: by the numbers that it knows them by.
    """

    name: str
    entry: Callable[..., None]
    kernels: Mapping[int, Callable[..., None]]

    def submit(self, place: Place) -> int:
        """Acts as Kernel.submit."""
        return place.run(self._call)

    def _call(self, args: list[Any]) -> None:
        running().kernels = dict(self.kernels)
        self.entry(args)


def kernel_of(chip: ChipCallable) -> Kernel:
    """Returns the kernel that runs when a chip is told to do it.

    Raises:
        ValueError: one of its kernels was not compiled; there are several, and there is no orchestration that says what
            to do with them, or not all of them are compiled or in Python.
        RuntimeError: the orchestration has no function of its name.
    """
    kernels = {number: _kernels.kernel_of(core.binary) for number, core in chip.children}
    source = _kernels.orchestration_of(chip.binary)
    only = next(iter(kernels.values())) if len(kernels) == 1 else None
    entry = None if source is None else _entry(chip, source, only)
    if entry is not None:
        compiled = only is not None and isinstance(entry, CompiledOrchestration)
        return Orchestrated(only.name if only and compiled else chip.func_name, entry, _entries(chip, kernels))
    if only is None:
        raise ValueError(_unknown(chip, source.twin if source else None))
    if source is not None and source.library is None:
        _kernels.say(f"{_kernels.uncompiled(source.file)}; its arguments are passed on to its only kernel")
    return only


def _entry(chip: ChipCallable, source: OrchestrationSource, only: Kernel | None) -> Callable[..., None] | None:
    """The orchestration's function; None where there is none, or where its only kernel is one of torchemu's own."""
    if source.twin.is_file():
        return _kernels.loaded(source.twin, chip.func_name, "the orchestration")
    if source.library is None or (only is not None and not isinstance(only, PythonKernel)):
        return None
    return CompiledOrchestration(source.library, chip.func_name, chip.config_name, str(source.file))


def _entries(chip: ChipCallable, kernels: Mapping[int, Kernel]) -> dict[int, Callable[..., None]]:
    entries: dict[int, Callable[..., None]] = {}
    for number, kernel in kernels.items():
        if not isinstance(kernel, PythonKernel):
            raise ValueError(
                f"{chip.func_name}: its kernels have to be compiled or in Python, and {kernel.name} is torchemu's own"
            )
        entries[number] = kernel.entry
    return entries


def _unknown(chip: ChipCallable, twin: Path | None) -> str:
    where = "in a file beside its source" if twin is None else f"in {twin}"
    return (
        f"{chip.func_name}: {len(chip.children)} kernels, and the source that says what to do with them was not "
        f"compiled; write {chip.func_name}(args) in Python, {where}, with rt_submit_aiv_task(func_id, args) of "
        "torchemu.pto"
    )
