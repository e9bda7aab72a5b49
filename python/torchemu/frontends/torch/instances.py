"""Instances that classes of installed packages keep for whoever asks for them by name: loggers, say, and what they log.

A process has one of a name. Ranks give theirs the same names, so each has instances of its own.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from typing import Any

from torchemu import runtime
from torchemu.frontends.torch.session import Session

_KEPT = {"mmengine.utils.manager": ("ManagerMeta", "_instance_dict")}
"""Modules, the classes of classes in them, and the attribute of these in which they keep instances."""


def install(run: Session) -> None:
    """Gives each rank instances of its own, as soon as such a module is loaded."""
    for module, (of_classes, name) in _KEPT.items():
        run.on_load[module] = functools.partial(_separate, run, of_classes, name)


def _separate(run: Session, of_classes: str, name: str, module: Any) -> None:
    """Makes an attribute of all classes of a kind hold what the running rank has put there."""
    kept: dict[tuple[runtime.Context | None, type], Any] = {}

    def get(kind: type) -> Any:
        return kept.setdefault((runtime.running(), kind), OrderedDict())

    def put(kind: type, value: Any) -> None:
        kept[runtime.running(), kind] = value

    setattr(getattr(module, of_classes), name, property(get, put))
    run.stack.callback(kept.clear)
