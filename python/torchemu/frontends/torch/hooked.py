"""The watchers of process groups that newer PyTorch has: hooks, recorders and the check for NaN are torchemu's."""

from __future__ import annotations

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
