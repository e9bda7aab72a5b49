"""A process begins to use devices: PyTorch initializes CUDA at the first use, and refuses to in a child that was forked
later.

A rank has begun when it has asked for a stream or for memory, or has called a function that needs the driver.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from torchemu import runtime
from torchemu.frontends.torch.device import streams
from torchemu.frontends.torch.device.ground import RankLocal, memory_use

_REFUSAL = (
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start "
    "method"
)


class Process:
    """A process's use of devices, so far as it is known.

    Args:
        is_child: it is a child that a rank stands for, such as a DataLoader's worker.

    Attributes:
        has_called: a function that needs the driver.
        before: bytes that the rank had taken for others when the process began.
        is_in_bad_fork: the process was forked after its parent had begun.
    """

    def __init__(self, is_child: bool = False) -> None:
        self.has_called = self.is_in_bad_fork = False
        self.is_child, self.before = is_child, 0

    def has_begun(self) -> bool:
        """Says whether the process has used a device."""
        if self.has_called or memory_use.current().taken > self.before:
            return True
        return not self.is_child and streams.are_known()


_PROCESS: RankLocal[Process] = RankLocal(Process)


def is_initialized() -> bool:
    """torch.cuda.is_initialized."""
    return runtime.present() is not None and not is_in_bad_fork() and _PROCESS.get().has_begun()


def is_in_bad_fork() -> bool:
    """torch.cuda._is_in_bad_fork."""
    return runtime.present() is not None and _PROCESS.get().is_in_bad_fork


def begin() -> None:
    """torch.cuda.init.

    Raises:
        RuntimeError: the process was forked after its parent had begun.
    """
    if runtime.present() is None:
        return
    process = _PROCESS.get()
    if process.is_in_bad_fork:
        _refuse()
    process.has_called = True


def before(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function begin the use of devices first."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        begin()
        return function(*args, **kwargs)

    return call


@contextlib.contextmanager
def inside(child: Process, method: str) -> Iterator[None]:
    """Makes what goes on meanwhile a child's of the running rank, which was started by a method.

    Raises:
        RuntimeError: the child was forked, its parent had begun, and it asks for memory of a device.
    """
    parent, use = _PROCESS.get(), memory_use.current()
    child.is_in_bad_fork = method == "fork" and (child.is_in_bad_fork or parent.has_begun())
    at_first, child.before = use.taken, use.taken
    _PROCESS.set(child)
    if child.is_in_bad_fork:
        use.take = _refuse  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        vars(use).pop("take", None)
        child.has_called = child.has_begun()
        parent.before += use.taken - at_first
        _PROCESS.set(parent)


def _refuse(*_: Any) -> NoReturn:
    raise RuntimeError(_REFUSAL)
