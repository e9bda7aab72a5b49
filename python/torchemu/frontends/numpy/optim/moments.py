"""torch.optim.NAdam, RAdam and Adamax: what became of Adam's two moments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import ones
from torchemu.frontends.numpy._tensor.dispatch import Op
from torchemu.frontends.numpy._tensor.reductions import wide
from torchemu.frontends.numpy.optim.adam import _check as _check_moments
from torchemu.frontends.numpy.optim.adaptive import _check, _count
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

__all__ = ["Adamax", "NAdam", "RAdam"]


def _decayed(p: Array, grad: Array, options: dict[str, Any]) -> tuple[Array, Array]:
    """The parameter and the gradient that moments are made of."""
    numbers, g, decay = wide(p), wide(grad), options["weight_decay"]
    g = -g if options["maximize"] else g
    if decay and options.get("decoupled_weight_decay"):
        return numbers * (1 - float(options["lr"]) * decay), g
    return numbers, g + numbers * decay if decay else g


def _moments(first: Array, second: Array, g: Array, options: dict[str, Any]) -> tuple[Array, Array]:
    """The next means of the gradients and of their squares."""
    beta1, beta2 = options["betas"]
    m, v = wide(first) + (g - wide(first)) * (1 - beta1), wide(second) * beta2 + g * g * (1 - beta2)
    store(first, m)
    store(second, v)
    return m, v


def _nadam(
    p: Array, first: Array, second: Array, grad: Array, options: dict[str, Any], step: float, shares: tuple[float, ...]
) -> None:
    """shares: what the gradient and the first moment count."""
    numbers, g = _decayed(p, grad, options)
    m, v = _moments(first, second, g, options)
    root = np.sqrt(v / (1 - options["betas"][1] ** step)) + options["eps"]
    lr = float(options["lr"])
    store(p, numbers - g / root * (lr * shares[0]) - m / root * (lr * shares[1]))


def _radam(p: Array, first: Array, second: Array, grad: Array, options: dict[str, Any], step: float) -> None:
    numbers, g = _decayed(p, grad, options)
    m, v = _moments(first, second, g, options)
    beta1, beta2 = options["betas"]
    change = m / (1 - beta1**step) * float(options["lr"])
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / (1 - beta2**step)
    if length > 5:
        certain = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
        change = change * math.sqrt(certain) * math.sqrt(1 - beta2**step) / (np.sqrt(v) + options["eps"])
    store(p, numbers - change)


def _adamax(p: Array, first: Array, largest: Array, grad: Array, options: dict[str, Any], step: float) -> None:
    numbers, g = _decayed(p, grad, options)
    beta1, beta2 = options["betas"]
    m = wide(first) + (g - wide(first)) * (1 - beta1)
    u = np.maximum(wide(largest) * beta2, np.abs(g) + options["eps"])
    store(first, m)
    store(largest, u)
    store(p, numbers - m / u * (float(options["lr"]) / (1 - beta1**step)))


def _flops(outputs: Any, inputs: Any) -> int:
    return 16 * int(outputs[0].numel())


NADAM, RADAM, ADAMAX = (
    Op(name, compute, _flops, traffic=read_and_written)
    for name, compute in (("nadam", _nadam), ("radam", _radam), ("adamax", _adamax))
)


class _OfMoments(PerParameter):
    """What these have in common: the state of a parameter."""

    _second = "exp_avg_sq"

    def _counted(self, p: Tensor) -> dict[str, Any]:
        """The state, with one step more."""
        state = self.state[p]
        if not state:
            state["step"], state["exp_avg"], state[self._second] = _count(), like(p), like(p)
        state["step"] += 1
        return state


class NAdam(_OfMoments):
    """Adam with Nesterov's momentum, one kernel a parameter.

    With g, m and v as Adam's, μₜ = β₁·(1 - 0.96^(t·momentum_decay)/2) and πₜ the product of all μ so far, p becomes
    p - lr·((1-μₜ)/(1-πₜ)·g + μₜ₊₁/(1-πₜ·μₜ₊₁)·m) / (√(v/(1-β₂ᵗ)) + eps) in step t.

    Args:
        params: tensors, or groups.
        lr, betas, eps, weight_decay: those of Adam.
        momentum_decay: as above.
        decoupled_weight_decay: p becomes p·(1 - lr·weight_decay) first, and g is the gradient.
        maximize: go up and not down.
        foreach, capturable: mean nothing here.
        differentiable: not supported.

    Raises:
        ValueError: a number that cannot be. NotImplementedError: differentiable.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_moments(lr, betas, eps, weight_decay)
        _check(momentum_decay=momentum_decay)
        check_ways(differentiable, foreach, None)
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach}
        defaults |= {"momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay}
        defaults |= {"maximize": maximize, "capturable": capturable, "differentiable": differentiable}
        super().__init__(params, defaults)

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        state = self._counted(p)
        if "mu_product" not in state:
            state["mu_product"] = ones((), dtype="float32", device="cpu")
        t = state["step"].item()
        mu, following = (group["betas"][0] * (1 - 0.5 * 0.96 ** (at * group["momentum_decay"])) for at in (t, t + 1))
        state["mu_product"] *= mu
        product = state["mu_product"].item()
        shares = (1 - mu) / (1 - product), following / (1 - product * following)
        update(NADAM, (p, state["exp_avg"], state["exp_avg_sq"]), p.grad, group, t, shares)


class RAdam(_OfMoments):
    """Adam that goes by the second moment only when that is certain enough, one kernel a parameter.

    With m and v as Adam's, ρ = 2/(1-β₂) - 1 and ρₜ = ρ - 2·t·β₂ᵗ/(1-β₂ᵗ), p becomes p - lr·m/(1-β₁ᵗ) in step t, and
    where ρₜ > 5 the change is multiplied by √(1-β₂ᵗ)/(√v + eps) and √((ρₜ-4)·(ρₜ-2)·ρ/((ρ-4)·(ρ-2)·ρₜ)).

    Args:
        params: tensors, or groups.
        lr, betas, eps, weight_decay: those of Adam.
        decoupled_weight_decay: p becomes p·(1 - lr·weight_decay) first, and g is the gradient.
        maximize: go up and not down.
        foreach, capturable: mean nothing here.
        differentiable: not supported.

    Raises:
        ValueError: a number that cannot be. NotImplementedError: differentiable.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_moments(lr, betas, eps, weight_decay)
        check_ways(differentiable, foreach, None)
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        defaults |= {"foreach": foreach, "capturable": capturable, "differentiable": differentiable}
        super().__init__(params, defaults | {"decoupled_weight_decay": decoupled_weight_decay})

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        state = self._counted(p)
        update(RADAM, (p, state["exp_avg"], state["exp_avg_sq"]), p.grad, group, state["step"].item())


class Adamax(_OfMoments):
    """Adam with the largest gradient in the place of the second moment, one kernel a parameter.

    With g and m as Adam's and u = max(β₂·u, |g| + eps), p becomes p - lr/(1-β₁ᵗ)·m/u in step t.

    Args:
        params: tensors, or groups.
        lr, betas, eps, weight_decay: those of Adam.
        maximize: go up and not down.
        foreach, capturable: mean nothing here.
        differentiable: not supported.

    Raises:
        ValueError: a number that cannot be. NotImplementedError: differentiable.
    """

    _second = "exp_inf"

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _check_moments(lr, betas, eps, weight_decay)
        check_ways(differentiable, foreach, None)
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach}
        super().__init__(
            params, defaults | {"maximize": maximize, "differentiable": differentiable, "capturable": capturable}
        )

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        state = self._counted(p)
        update(ADAMAX, (p, state["exp_avg"], state["exp_inf"]), p.grad, group, state["step"].item())
