"""Commands of the system by which programs ask for devices: ranks find nvidia-smi where the system has none.

Ranks that have no environment of their own, those of tests and of notebooks, do not.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from torchemu import runtime
from torchemu.frontends.torch import nvidia_smi
from torchemu.frontends.torch.device import cuda, visible
from torchemu.frontends.torch.session import Session

_COMMAND = "nvidia-smi"


def install(run: Session) -> None:
    """Puts the command where ranks look for programs, until the run ends."""
    if shutil.which(_COMMAND) is None:
        run.on_begin.append(_Folders(run).offer)


class _Folders:
    """Folders with the command, one for each node: a node's devices have numbers of their own.

    Args:
        run: they are removed at its end.
    """

    def __init__(self, run: Session) -> None:
        self._run = run
        self._known: dict[tuple[int, ...] | None, str] = {}

    def offer(self, context: runtime.Context) -> None:
        """Lets the running rank's program find the command, after all that the system has."""
        if context.process is None:
            return
        node = None if context.node is None else tuple(context.node)
        if node not in self._known:
            self._known[node] = self._run.stack.enter_context(tempfile.TemporaryDirectory(prefix="torchemu-"))
            _write(Path(self._known[node]))
        folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
        if self._known[node] not in folders:
            os.environ["PATH"] = os.pathsep.join([*folders, self._known[node]])


def _write(folder: Path) -> None:
    """Writes the command, and what it tells of the devices of the running rank's node."""
    devices = folder / "devices.json"
    devices.write_text(
        json.dumps([_described(index) for index in range(visible.on_node(runtime.current()))]), encoding="utf-8"
    )
    program = [sys.executable, "-I", nvidia_smi.__file__, str(devices)]
    command = folder / _COMMAND
    command.write_text(f'#!/bin/sh\nexec {shlex.join(program)} "$@"\n', encoding="utf-8")
    command.chmod(0o755)


def _described(index: int) -> dict[str, object]:
    """Returns what the command knows of a device."""
    device = cuda.in_node(index)
    return {
        "index": index,
        "count": visible.on_node(runtime.current()),
        "name": device.name,
        "uuid": device.uuid,
        "memory": device.total_memory,
        "capability": f"{device.major}.{device.minor}",
    }
