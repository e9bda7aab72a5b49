"""Kernels that ccl.yaml names: collectives run them."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from torchemu import dtypes
from torchemu.bridge.binding import go
from torchemu.language._launch import Kernel, Launched
from torchemu.language._pointer import Pointer

if TYPE_CHECKING:
    from torchemu.language._machine import Machine
    from torchemu.language._program import Program


class Member(Launched):
    """One rank's part in a collective that a kernel runs.

    Attributes:
        run: what all its members have.
    """

    def __init__(self, machine: Machine, handle: int) -> None:
        about = json.loads(go.PrimMember(handle))
        ranks = tuple(about["ranks"])
        kernel = machine.kernels[about["collective"]]
        super().__init__(machine, machine.world.main, kernel, ranks, about["index"])
        self.handle, self.run = handle, about["run"]
        kind = dtypes.parse(about["dtype"])
        self._out, self._source = Pointer(about["out"], kind, ranks), Pointer(about["source"], kind, ranks)
        self._n, self._op = about["n"], about["op"]
        self.count()

    def call(self) -> None:
        """Runs the function, in a program."""
        self.kernel.function(self._out, self._source, self._n, self._op)

    def failed(self, program: Program, error: BaseException) -> None:
        """Ends the collective for all its members."""
        go.PrimEnd(program.handle, self.report(error))
        self.machine.kill(lambda launch: isinstance(launch, Member) and launch.run == self.run)
        self.machine.restart(self.kernel)

    def look(self) -> None:
        """Lets go of it when its program has ended, as it has."""
        self.machine.launches.pop(self.handle, None)


def load(collective: str, name: str, file: str, function: str, place: str) -> Kernel:
    """The kernel that ccl.yaml names for a collective, at a place in it.

    Raises:
        ValueError: there is no such file or function, or it is no kernel for this collective.
    """
    what = f"{place}: kernel {name!r} of the ccl config"
    path = Path(file)
    if not path.is_file():
        raise ValueError(f"{what}: there is no file {file}")
    found = getattr(_module(path, what), function, None)
    if found is None:
        raise ValueError(f"{what}: {file} has no function {function}")
    if not isinstance(found, Kernel) or found.collective is None:
        raise ValueError(
            f"{what}: {function} of {file} is no collective: it needs @torchemu.kernel(collective={collective!r})"
        )
    if found.collective != collective:
        raise ValueError(f"{what}: {function} of {file} is a kernel for {found.collective}, not for {collective}")
    return found


def _module(path: Path, what: str) -> object:
    """The file's module, which is a new one for each World: a kernel's file may have changed."""
    name = f"torchemu_kernels_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == spec.origin]
        at = f"{path}:{lines[-1]}" if lines else f"{path}"
        raise ValueError(f"{what}: {at} cannot be loaded: {type(error).__name__}: {error}") from error
    return module
