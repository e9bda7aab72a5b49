"""Functions of a program that are called before and after the operations of a group, as newer PyTorch has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.distributed import distributed_c10d as c10d

from torchemu.c10d import hooks as watchers
from torchemu.c10d.flight_files import FlightRecorderHook
from torchemu.frontends.torch.session import Session

_KINDS = (FlightRecorderHook, watchers.NanCheckHook, watchers.HookOpName, watchers.PreHookArgs, watchers.PostHookArgs)


def install(run: Session) -> None:
    """Lets the watchers of groups, and what these are told, be torchemu's where PyTorch has them, until the run ends. A
    group is recorded, and checked for NaN, from when it gets its description."""
    for kind in _KINDS:
        for module in (c10d, torch._C._distributed_c10d):
            if hasattr(module, kind.__name__):
                run.replace(module, kind.__name__, kind)
    if hasattr(c10d, "_maybe_attach_flight_recorder"):
        run.replace(c10d, "_maybe_attach_flight_recorder", lambda *_: None)


class Hooked:
    """A group whose operations programs can watch."""

    hooks: watchers.Hooks | None
    supports_completion_hooks = supports_abort_hooks = False

    def register_pre_hook(self, hook_id: int, hook: Callable[[watchers.PreHookArgs], Any]) -> None:
        """Calls a function before each operation that this rank issues to the group."""
        watchers.attach(self, ("pre", hook_id), watchers.calls_before(hook))  # type: ignore[arg-type]

    def unregister_pre_hook(self, hook_id: int) -> None:
        """Calls it no more."""
        watchers.detach(self, ("pre", hook_id))  # type: ignore[arg-type]

    def register_post_hook(self, hook_id: int, hook: Callable[[watchers.PostHookArgs], Any]) -> None:
        """Calls a function after each operation that this rank issues to the group."""
        watchers.attach(self, ("post", hook_id), watchers.calls_after(hook))  # type: ignore[arg-type]

    def unregister_post_hook(self, hook_id: int) -> None:
        """Calls it no more."""
        watchers.detach(self, ("post", hook_id))  # type: ignore[arg-type]
