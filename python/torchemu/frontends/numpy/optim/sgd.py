"""torch.optim.SGD."""

from __future__ import annotations

from typing import Any

from torchemu.frontends.numpy._tensor.conversion import converted
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import Op
from torchemu.frontends.numpy._tensor.reductions import wide
from torchemu.frontends.numpy.optim.optimizer import (
    Array,
    ParamsT,
    PerParameter,
    check_ways,
    like,
    read_and_written,
    update,
)

__all__ = ["SGD"]


def _sgd(p: Array, *arrays: Any) -> None:
    """arrays: the momentum's buffer if there is one, the gradient, and the group's options."""
    *buffers, grad, options, first = arrays
    numbers, g = wide(p), wide(grad)
    if options["maximize"]:
        g = -g
    if options["weight_decay"]:
        g = g + numbers * options["weight_decay"]
    if buffers:
        momentum = options["momentum"]
        v = g if first else wide(buffers[0]) * momentum + g * (1 - options["dampening"])
        buffers[0][...] = converted(v, p.dtype)
        g = g + v * momentum if options["nesterov"] else v
    p[...] = converted(numbers - g * float(options["lr"]), p.dtype)


STEP = Op("sgd", _sgd, lambda outputs, inputs: 6 * outputs[0].numel(), traffic=read_and_written)


class SGD(PerParameter):
    """Gradient descent, one kernel a parameter.

    With g = gradient + weight_decay·p and, where there is momentum, v = momentum·v + (1 - dampening)·g (at first
    v = g), p becomes p - lr·v; with nesterov p - lr·(g + momentum·v). Short floats are calculated with as float32.

    Args:
        params: tensors, or groups.
        lr: the learning rate.
        momentum, dampening, weight_decay, nesterov: as above.
        maximize: go up and not down.
        foreach, fused: mean nothing here.
        differentiable: not supported.

    Raises:
        ValueError: a number that cannot be. RuntimeError: fused and foreach. NotImplementedError: differentiable.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Any = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        for name, value in {
            "learning rate": lr,
            "momentum value": momentum,
            "weight_decay value": weight_decay,
        }.items():
            if value < 0.0:
                raise ValueError(f"Invalid {name}: {value}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_ways(differentiable, foreach, fused)
        defaults = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        defaults |= {"nesterov": nesterov, "maximize": maximize, "foreach": foreach}
        super().__init__(params, defaults | {"differentiable": differentiable, "fused": fused})

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        if not group["momentum"]:
            update(STEP, (p,), p.grad, group, False)
            return
        state = self.state[p]
        first = state.get("momentum_buffer") is None
        if first:
            state["momentum_buffer"] = like(p)
        update(STEP, (p, state["momentum_buffer"]), p.grad, group, first)
