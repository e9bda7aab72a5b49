"""Hooks of FSDP and of optimizers, whose Python takes a rank's host longer than their kernels' launches."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

from torchemu.frontends.torch.device import host_work, launches
from torchemu.frontends.torch.session import Session

_GROUPS = "torch.distributed.fsdp._fully_shard._fsdp_param_group"
_HANDLES = "torch.distributed.fsdp._runtime_utils"


def install(run: Session) -> None:
    """Lets them take what the topology says, until the run ends."""
    run.stack.callback(register_optimizer_step_pre_hook(_take_time_for_parameters).remove)
    run.on_load[_GROUPS] = functools.partial(_take_time_in_groups, run)
    run.on_load[_HANDLES] = functools.partial(_take_time_in_handles, run)


def _take_time_for_parameters(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    """Lets an optimizer that is about to step take its time."""
    took = host_work.current().optimizer_parameter
    if took:
        stepped = (p for group in optimizer.param_groups for p in group["params"] if p.grad is not None)
        launches.current().before += took * sum(1 for _ in stepped)


def _take_time_in_groups(run: Session, module: Any) -> None:
    """Lets FSDP 2 take its time: all hooks but that after a forward pass gather parameters, or reduce gradients. The
    one before a backward pass is called for each result of a module, and does something for the first."""
    group, states = module.FSDPParamGroup, module.TrainingState

    def parameters(self: Any) -> int:
        return len(self.fsdp_params)

    def has_begun(self: Any) -> bool:
        return bool(self._training_state is states.PRE_BACKWARD)

    for name in ("pre_forward", "post_backward"):
        run.replace(group, name, _taking_time(getattr(group, name), parameters))
    run.replace(group, "pre_backward", _taking_time(group.pre_backward, parameters, has_begun))
    run.replace(group, "post_forward", _taking_time(group.post_forward))


def _take_time_in_handles(run: Session, module: Any) -> None:
    """Lets FSDP 1 take its time, where the parameters of each module that it wraps are one."""
    for name in ("_unshard", "_reshard"):
        run.replace(module, name, _taking_time(getattr(module, name)))


def _taking_time(
    hook: Callable[..., Any],
    parameters: Callable[[Any], int] = lambda first: 0,
    is_idle: Callable[[Any], bool] = lambda first: False,
) -> Callable[..., Any]:
    """Returns a hook that takes its time first.

    Args:
        hook: the hook.
        parameters: counts those that it gathers or reduces, by what the hook is called with first.
        is_idle: says, by the same, that it does nothing.
    """

    @functools.wraps(hook)
    def call(first: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_idle(first):
            work = host_work.current()
            launches.current().before += work.fsdp + work.fsdp_parameter * parameters(first)
        return hook(first, *args, **kwargs)

    return call
