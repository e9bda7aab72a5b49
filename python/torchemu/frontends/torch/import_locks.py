"""Locks of modules that are being imported, for each rank its own.

Python keeps one for each name, by which a thread waits until another one has imported the module. Ranks are threads
here, and each has modules of its own: one that waits in the middle of an import would hold up the others for ever.
"""

from __future__ import annotations

import importlib
from typing import Any

from torchemu import runtime
from torchemu.frontends.torch.session import Session

_bootstrap: Any = vars(importlib)["_bootstrap"]


def install(run: Session) -> None:
    """Exchanges them whenever another rank goes on."""
    kept: dict[runtime.Context | None, Any] = {}

    def exchange(before: runtime.Context | None, after: runtime.Context | None) -> None:
        kept[before] = _bootstrap._module_locks
        _bootstrap._module_locks = kept.pop(after, None) or {}

    run.on_switch.append(exchange)
