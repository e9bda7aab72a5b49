"""Hooks that PyTorch calls for every module and every optimizer of a process: each rank has its own.

Such are those of register_module_forward_hook, on which CommDebugMode, FlopCounterMode and ModuleTracker rest.
"""

from __future__ import annotations

import copy
from typing import Any

from torch.nn.modules import module
from torch.optim import optimizer

from torchemu import runtime
from torchemu.frontends.torch.session import Session

_REBOUND = "_global_is_full_backward_hook"
"""The kind of the backward hooks that there are; what else is exchanged are dicts, which stay the same."""


class Hooks:
    """Exchanges them.

    Args:
        owner: the module that has them in its variables.
    """

    def __init__(self, owner: Any) -> None:
        self._variables = vars(owner)
        self._own: dict[runtime.Context | None, dict[str, Any]] = {}
        self._own[None] = {name: value for name, value in self._variables.items() if name.startswith("_global_")}

    def of(self, context: runtime.Context | None) -> dict[str, Any]:
        """Returns a rank's, by the names of the variables; it begins with those that there are outside of ranks."""
        own = self._own.get(context)
        if own is None:
            own = self._own[context] = {name: copy.copy(value) for name, value in self._own[None].items()}
        return own

    def exchange(self, before: runtime.Context | None, after: runtime.Context | None) -> None:
        """Puts a rank's in place of another one's."""
        if _REBOUND in self._variables:
            self.of(before)[_REBOUND] = self._variables[_REBOUND]
        self._variables.update(self.of(after))


def install(run: Session) -> None:
    """Gives each rank its own, until the run ends."""
    run.on_switch += [Hooks(owner).exchange for owner in (module, optimizer)]
