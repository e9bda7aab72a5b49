"""PyYAML's loaders and dumpers, which keep what programs add on their classes: each rank has its own.

PyYAML is loaded once. A constructor that each rank adds would be that of the rank which came last, and what it makes an
instance of that rank's class. What modules of packages add while they are loaded is everybody's.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from torchemu.frontends.torch.session import Session
from torchemu.runtime.frames import is_installed

MODULE = "yaml"

_ADDERS: tuple[tuple[str, str, Sequence[str]], ...] = (
    ("constructor", "BaseConstructor", ("constructor", "multi_constructor")),
    ("representer", "BaseRepresenter", ("representer", "multi_representer")),
    ("resolver", "BaseResolver", ("implicit_resolver",)),
)
"""Modules, their classes, and what class methods add to a table of theirs, whose name has an s more."""


def separate(run: Session, note: Callable[[type, str], None], yaml: Any) -> None:
    """Gives ranks tables of their own, until the run ends.

    Args:
        run: the run.
        note: gives ranks an attribute of a class of their own.
        yaml: the module.
    """
    for module, base, names in _ADDERS:
        kind = getattr(getattr(yaml, module), base)
        for name in names:
            adder = vars(kind)[f"add_{name}"]
            run.replace(kind, f"add_{name}", classmethod(_noting(adder.__func__, f"yaml_{name}s", note)))


def _noting(adder: Callable[..., None], table: str, note: Callable[[type, str], None]) -> Callable[..., None]:
    @functools.wraps(adder)
    def add(cls: type, *args: Any, **kwargs: Any) -> None:
        frame = sys._getframe(1)
        if frame.f_globals.get("__name__") == MODULE and frame.f_back is not None:  # one of its functions
            frame = frame.f_back
        is_loading = frame.f_code.co_name == "<module>" and is_installed(frame.f_code.co_filename)
        if not is_loading and is_installed(getattr(sys.modules.get(cls.__module__), "__file__", None) or ""):
            note(cls, table)
        adder(cls, *args, **kwargs)

    return add
