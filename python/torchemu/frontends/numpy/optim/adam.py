"""torch.optim.Adam and AdamW."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import zeros
from torchemu.frontends.numpy._tensor.dispatch import Op
from torchemu.frontends.numpy._tensor.reductions import wide
from torchemu.frontends.numpy.optim.optimizer import (
    Array,
    ParamsT,
    PerParameter,
    check_ways,
    like,
    read_and_written,
    store,
    update,
)

__all__ = ["Adam", "AdamW"]


def _adam(p: Array, *arrays: Any) -> None:
    """arrays: the moments, with amsgrad the largest second moment too, the gradient, the group's options, and the
    number of the step."""
    first, second, *largest, grad, options, step = arrays
    beta1, beta2 = (float(beta) for beta in options["betas"])
    lr = float(options["lr"])
    numbers, g = wide(p), wide(grad)
    if options["maximize"]:
        g = -g
    if options["weight_decay"]:
        if options["decoupled_weight_decay"]:
            numbers = numbers * (1 - lr * options["weight_decay"])
        else:
            g = g + numbers * options["weight_decay"]
    m, v = wide(first), wide(second)
    m = m + (g - m) * (1 - beta1)
    v = v * beta2 + g * g * (1 - beta2)
    store(first, m)
    store(second, v)
    if largest:
        v = np.maximum(wide(largest[0]), v)
        store(largest[0], v)
    root = np.sqrt(v) / math.sqrt(1 - beta2**step) + options["eps"]
    store(p, numbers - lr / (1 - beta1**step) * (m / root))


STEP = Op("adam", _adam, lambda outputs, inputs: 16 * outputs[0].numel(), traffic=read_and_written)


class Adam(PerParameter):
    """Adam, one kernel a parameter.

    With g = gradient + weight_decay·p, m = β₁·m + (1-β₁)·g and v = β₂·v + (1-β₂)·g², p becomes
    p - lr·m/(1-β₁ᵗ) / (√(v/(1-β₂ᵗ)) + eps) in step t. Short floats are calculated with as float32.

    Args:
        params: tensors, or groups.
        lr: the learning rate.
        betas: β₁ and β₂.
        eps: keeps the divisor from zero.
        weight_decay: as above.
        amsgrad: the largest v so far in the place of v.
        maximize: go up and not down.
        foreach, capturable, fused: mean nothing here.
        differentiable: not supported.
        decoupled_weight_decay: p becomes p·(1 - lr·weight_decay) first, and g is the gradient.

    Raises:
        ValueError: a number that cannot be. RuntimeError: fused and foreach. NotImplementedError: differentiable.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        _check(lr, betas, eps, weight_decay)
        check_ways(differentiable, foreach, fused)
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        defaults |= {"maximize": maximize, "foreach": foreach, "capturable": capturable}
        defaults |= {"differentiable": differentiable, "fused": fused}
        super().__init__(params, defaults | {"decoupled_weight_decay": decoupled_weight_decay})

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        state = self.state[p]
        if not state:
            state["step"] = zeros((), dtype="float32", device="cpu")
            state["exp_avg"], state["exp_avg_sq"] = like(p), like(p)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = like(p)
        state["step"] += 1
        moments = [state[name] for name in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if name in state]
        update(STEP, (p, *moments), p.grad, group, state["step"].item())


def _check(lr: Any, betas: tuple[Any, Any], eps: float, weight_decay: float) -> None:
    """Raises:
    ValueError: a number that cannot be.
    """
    if not lr >= 0:
        raise ValueError(f"Invalid learning rate: {lr}")
    if not eps >= 0:
        raise ValueError(f"Invalid epsilon value: {eps}")
    for index, beta in enumerate(betas):
        if not 0 <= beta < 1:
            raise ValueError(f"Invalid beta parameter at index {index}: {beta}")
    if not weight_decay >= 0:
        raise ValueError(f"Invalid weight_decay value: {weight_decay}")


class AdamW(Adam):
    """Adam with weight decay that the moments do not see.

    Args:
        params: tensors, or groups.
        lr, betas, eps, amsgrad: those of Adam.
        weight_decay: p becomes p·(1 - lr·weight_decay) first.
        maximize, foreach, capturable, differentiable, fused: those of Adam.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        options: dict[str, Any] = {"maximize": maximize, "foreach": foreach, "capturable": capturable}
        options |= {"differentiable": differentiable, "fused": fused, "decoupled_weight_decay": True}
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **options)
