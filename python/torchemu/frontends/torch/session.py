"""A run on the installed PyTorch: what is done to PyTorch while it lasts, and who takes part when ranks change."""

from __future__ import annotations

import _thread
import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from torchemu import runtime
from torchemu.frontends import stand_ins
from torchemu.runtime import fibers
from torchemu.runtime import world as worlds

Switch = Callable[["runtime.Context | None", "runtime.Context | None"], None]
"""Called with the rank that has run and the one that goes on, None outside of ranks, on the latter's thread."""


class Session:
    """One run.

    Args:
        world: the World that it runs in.
        stack: undoes what is done to PyTorch.
        data: tensors of devices have elements; without, operations take their time and nothing is computed.

    Attributes:
        on_switch: is called whenever another rank goes on.
        on_turn: is called on the thread of a rank that goes on, where the rank has had several.
        on_begin: is called on each thread of a rank that begins, with the rank's context.
        on_end: is called on each thread of a rank that ends.
        on_load: are called with modules of PyTorch, by their names, once they are loaded.
        before_use: is called with tensors that an operation is about to read or write; None for nothing.
        put_off: is called with a work that the host need not wait for; it answers whether the host goes on although
            the work's data is not in place. None: hosts wait for data.
        is_on_host: says whether a tensor is in the host's memory, and not on a device.
        suspect: is called with the same, the name of the call and whether the first tensor is the host's, where that
            may be an error on a cluster.
        refuse_hosts: is called with a group of nccl and the tensors of a call; it raises where one is the host's.
    """

    def __init__(self, world: runtime.World, stack: contextlib.ExitStack, data: bool = True) -> None:
        self.world, self.stack, self.data = world, stack, data
        self.on_switch: list[Switch] = []
        self.on_turn: list[Callable[[], object]] = []
        self.on_begin: list[Callable[[runtime.Context], object]] = []
        self.on_end: list[Callable[[], object]] = []
        self.on_load: dict[str, Callable[[Any], object]] = {}
        self.before_use: Callable[[list[torch.Tensor]], None] | None = None
        self.put_off: Callable[[Any], bool] | None = None
        self.is_on_host: Callable[[torch.Tensor], bool] = lambda tensor: True
        self.refuse_hosts: Callable[[Any, Sequence[torch.Tensor]], None] | None = None
        self.suspect: Callable[[Any, str, Sequence[torch.Tensor], bool], None] | None = None
        self._last: runtime.Context | None = None
        self._begun: set[int] = set()  # numbers of threads

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Replaces an attribute until the run ends."""
        missing = object()
        before = vars(owner).get(name, missing) if isinstance(owner, type) else getattr(owner, name, missing)
        if before is missing:
            self.stack.callback(delattr, owner, name)
        else:
            self.stack.callback(setattr, owner, name, before)
        setattr(owner, name, value)

    def enter(self, ident: int) -> None:
        """Puts in place what the running rank has of its own; called on its thread, of this number, as its turn
        begins."""
        self.world.adopt(ident)
        context = runtime.running()
        before = self._last
        if ident not in self._begun and context is not None and context.tasks is not None:
            self._begun.add(ident)
            for begin in self.on_begin:
                begin(context)
        if context is not before:
            self._last = context
            for switch in self.on_switch:
                switch(before, context)
        if context is not None and context.threads is not None:
            for turn in self.on_turn:
                turn()

    def end(self) -> None:
        """Takes away what on_begin has put on the running thread, which ends."""
        self._begun.discard(_thread.get_ident())  # the next thread may have its number
        for end in self.on_end:
            end()

    def leave(self) -> None:
        """Puts in place what is nobody's."""
        for switch in self.on_switch:
            switch(self._last, None)
        self._last = None


_open: Session | None = None

_LIBRARY = ("contextlib.py", "functools.py", "importlib", "runpy.py", "threading.py", "concurrent")
"""Modules of Python's library that stand between PyTorch and who calls it."""


def _between() -> list[str]:
    library = os.path.dirname(contextlib.__file__)
    return [os.path.dirname(torch.__file__) + os.sep, *(os.path.join(library, name) for name in _LIBRARY)]


def current() -> Session:
    """The run that goes on."""
    if _open is None:
        raise RuntimeError(
            "the backend ahbm runs inside of a simulated cluster: torchemu run --torch real SCRIPT, or "
            "torchemu.pytorch.spawn"
        )
    return _open


def is_open() -> bool:
    """Says whether a run goes on."""
    return _open is not None


@contextlib.contextmanager
def opened(world: runtime.World, seed: int = 0, data: bool = True) -> Iterator[Session]:
    """Makes PyTorch that of a World's ranks, which are to be made after this, until the with block ends.

    Args:
        world: the World.
        seed: of the ranks' generators.
        data: tensors of devices have elements.
    """
    global _open
    from torchemu.frontends.torch import installing

    with contextlib.ExitStack() as stack:
        session = Session(world, stack, data)
        world.fibers = fibers.Threads(session.enter, session.end)
        worlds.look_past(_between())
        stack.callback(worlds.look_past, ())
        before, _open = _open, session
        try:
            stack.enter_context(stand_ins.installed("real"))
            installing.install(session, seed)
            yield session
        finally:
            session.leave()
            _open = before
