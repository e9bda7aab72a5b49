"""A running kernel: a greenlet that gives the machine one instruction after another, and parks when it has to wait."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable
from typing import Any

import greenlet

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.frontends.pto._core import Core


class Program(greenlet.greenlet):
    """One kernel on one worker.

    Args:
        name: for reports.
        machine: the handle of the machine.
        handle: that of the program.
        lines: the numbers of the lines that the machine knows, which this adds to.
        body: the kernel with its arguments.
        core: what it has for compiled kernels.

    Attributes:
        error: what the kernel raised, once it has ended.
        kernels: what it may submit, by number, while it is an orchestration; else None.
    """

    def __init__(
        self,
        name: str,
        machine: int,
        handle: int,
        lines: dict[str, int],
        body: Callable[[], None],
        core: Core | None = None,
    ) -> None:
        super().__init__(self._run)
        self.name, self.machine, self.handle, self.core = name, machine, handle, core
        self.error: Exception | None = None
        self.kernels: dict[int, Callable[..., None]] | None = None
        self._lines, self._body = lines, body

    def _run(self) -> None:
        try:
            self._body()
            self.operate(go.PrimOrder, "pipe_barrier")  # a kernel has ended when its pipes are empty
        except Exception as error:
            self.error = error

    def operate(self, door: Callable[..., Any], *args: Any) -> None:
        """Calls an operation of the core at the kernel's line; returns when the kernel may go on."""
        if door(self.handle, self._line(), *args):
            self.parent.switch()

    def test(self, door: Callable[..., Any], *args: Any) -> bool:
        """Calls an operation that looks whether something is so, and returns what it finds."""
        self.operate(door, *args)
        return bool(go.PrimResult(self.handle))

    def _line(self) -> int:
        """The number of the line in the kernel that called into torchemu."""
        return self.line(_place(sys._getframe(2)))

    def line(self, text: str) -> int:
        """The number of a line."""
        if text not in self._lines:
            self._lines[text] = go.PrimLine(self.machine, text)
        return self._lines[text]


def _place(frame: types.FrameType | None) -> str:
    """The innermost place that is not in this package: the file's name, since folders say nothing, and the line."""
    while frame is not None and frame.f_code.co_filename.startswith(runtime.PACKAGE):
        frame = frame.f_back
    return (
        "the end of the kernel" if frame is None else f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
    )


def running() -> Program:
    """The kernel that calls.

    Raises:
        RuntimeError: none does.
    """
    program = greenlet.getcurrent()
    if not isinstance(program, Program):
        raise RuntimeError("instructions of a chip can be used in kernels only: in kernel_entry and what it calls")
    return program
