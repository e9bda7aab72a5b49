"""FSDP2's parameters that are offloaded: a DTensor says the device that it was made on, whatever it has later."""

from __future__ import annotations

import functools
from typing import Any

from torchemu.frontends.torch.device import places
from torchemu.frontends.torch.session import Session


def install(run: Session) -> None:
    """Lets parameters that a program has moved to a device say so, until the run ends, once there is FSDP2. It copies
    them to pinned memory before it looks where they are, and refuses those that are on a device."""
    run.on_load["torch.distributed.fsdp._fully_shard._fsdp_param"] = functools.partial(_keep_places, run)


def _keep_places(run: Session, module: Any) -> None:
    kind = module.FSDPParam
    reset = kind.reset_sharded_param

    @functools.wraps(reset)
    def reset_sharded_param(self: Any) -> None:
        parameter = getattr(self._module_info.module, self._module_info.param_name)
        before = places.of(parameter)
        reset(self)
        if before is not None and places.of(parameter) is None:
            parameter._place = before

    run.replace(kind, "reset_sharded_param", reset_sharded_param)
