"""torch.optim.RMSprop, Adagrad and Adadelta: steps by what gradients have been so far."""

from __future__ import annotations

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

__all__ = ["Adadelta", "Adagrad", "RMSprop"]


def _gradient(p: Array, grad: Array, options: dict[str, Any]) -> Array:
    g = -wide(grad) if options["maximize"] else wide(grad)
    return g + wide(p) * options["weight_decay"] if options["weight_decay"] else g


def _rmsprop(p: Array, *arrays: Any) -> None:
    """arrays: the mean square, the mean where centered, the momentum's buffer where there is one, the gradient, and the
    group's options."""
    square, *others, grad, options = arrays
    g, alpha = _gradient(p, grad, options), options["alpha"]
    mean_square = wide(square) * alpha + g * g * (1 - alpha)
    store(square, mean_square)
    if options["centered"]:
        mean = wide(others[0]) + (g - wide(others[0])) * (1 - alpha)
        store(others[0], mean)
        mean_square = mean_square - mean * mean
    step = g / (np.sqrt(mean_square) + options["eps"])
    if options["momentum"]:
        step = wide(others[-1]) * options["momentum"] + step
        store(others[-1], step)
    store(p, wide(p) - step * float(options["lr"]))


def _adagrad(p: Array, total: Array, grad: Array, options: dict[str, Any], step: float) -> None:
    g = _gradient(p, grad, options)
    squares = wide(total) + g * g
    store(total, squares)
    rate = float(options["lr"]) / (1 + (step - 1) * options["lr_decay"])
    store(p, wide(p) - g / (np.sqrt(squares) + options["eps"]) * rate)


def _adadelta(p: Array, square: Array, delta: Array, grad: Array, options: dict[str, Any]) -> None:
    g, rho, eps = _gradient(p, grad, options), options["rho"], options["eps"]
    mean_square = wide(square) * rho + g * g * (1 - rho)
    change = np.sqrt(wide(delta) + eps) / np.sqrt(mean_square + eps) * g
    store(square, mean_square)
    store(delta, wide(delta) * rho + change * change * (1 - rho))
    store(p, wide(p) - change * float(options["lr"]))


def _flops(outputs: Any, inputs: Any) -> int:
    return 12 * int(outputs[0].numel())


RMSPROP, ADAGRAD, ADADELTA = (
    Op(name, compute, _flops, traffic=read_and_written)
    for name, compute in (("rmsprop", _rmsprop), ("adagrad", _adagrad), ("adadelta", _adadelta))
)


def _check(**values: float) -> None:
    """Raises:
    ValueError: one of them is negative.
    """
    for name, value in values.items():
        if not value >= 0:
            text = {"lr": "learning rate", "eps": "epsilon value"}.get(name, f"{name} value")
            raise ValueError(f"Invalid {text}: {value}")


def _count() -> Tensor:
    return zeros((), dtype="float32", device="cpu")


class RMSprop(PerParameter):
    """Steps divided by the root of the mean square of the gradients, one kernel a parameter.

    With g = gradient + weight_decay·p and v = alpha·v + (1-alpha)·g², p becomes p - lr·g/(√v + eps); where centered, v
    less the square of the mean of g is used; with momentum steps add up.

    Args:
        params: tensors, or groups.
        lr, alpha, eps, weight_decay, momentum: as above.
        centered: as above.
        maximize: go up and not down.
        foreach, capturable: mean nothing here.
        differentiable: not supported.

    Raises:
        ValueError: a number that cannot be. NotImplementedError: differentiable.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        check_ways(differentiable, foreach, None)
        defaults = {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered}
        defaults |= {"weight_decay": weight_decay, "capturable": capturable, "foreach": foreach}
        super().__init__(params, defaults | {"maximize": maximize, "differentiable": differentiable})

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        state = self.state[p]
        if not state:
            state["step"], state["square_avg"] = _count(), like(p)
            if group["momentum"] > 0:
                state["momentum_buffer"] = like(p)
            if group["centered"]:
                state["grad_avg"] = like(p)
        state["step"] += 1
        names = ("square_avg", "grad_avg", "momentum_buffer")
        update(RMSPROP, (p, *[state[name] for name in names if name in state]), p.grad, group)


class Adagrad(PerParameter):
    """Steps divided by the root of the sum of the squares of all gradients, one kernel a parameter.

    With g = gradient + weight_decay·p and s = s + g², p becomes p - lr/(1 + (t-1)·lr_decay)·g/(√s + eps) in step t.

    Args:
        params: tensors, or groups.
        lr, lr_decay, weight_decay, eps: as above.
        initial_accumulator_value: what s is at first.
        maximize: go up and not down.
        foreach, fused: mean nothing here.
        differentiable: not supported.

    Raises:
        ValueError: a number that cannot be. RuntimeError: fused and foreach. NotImplementedError: differentiable.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _check(lr=lr, lr_decay=lr_decay, weight_decay=weight_decay)
        _check(initial_accumulator_value=initial_accumulator_value, eps=eps)
        check_ways(differentiable, foreach, fused)
        defaults = {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay}
        defaults |= {"initial_accumulator_value": initial_accumulator_value, "foreach": foreach}
        super().__init__(params, defaults | {"maximize": maximize, "differentiable": differentiable, "fused": fused})
        for group in self.param_groups:
            for p in group["params"]:
                total = like(p).fill_(initial_accumulator_value)
                self.state[p] = {"step": _count(), "sum": total}

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        state = self.state[p]
        state["step"] += 1
        update(ADAGRAD, (p, state["sum"]), p.grad, group, state["step"].item())


class Adadelta(PerParameter):
    """Steps as large as those before, by the mean squares of both, one kernel a parameter.

    With g = gradient + weight_decay·p and v = rho·v + (1-rho)·g², d = √(u + eps)/√(v + eps)·g and
    u = rho·u + (1-rho)·d², p becomes p - lr·d.

    Args:
        params: tensors, or groups.
        lr, rho, eps, weight_decay: as above.
        maximize: go up and not down.
        foreach, capturable: mean nothing here.
        differentiable: not supported.

    Raises:
        ValueError: a number that cannot be. NotImplementedError: differentiable.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        if not 0 <= rho <= 1:
            raise ValueError(f"Invalid rho value: {rho}")
        _check(lr=lr, eps=eps, weight_decay=weight_decay)
        check_ways(differentiable, foreach, None)
        defaults = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(
            params, defaults | {"capturable": capturable, "foreach": foreach, "differentiable": differentiable}
        )

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        state = self.state[p]
        if not state:
            state["step"], state["square_avg"], state["acc_delta"] = _count(), like(p), like(p)
        state["step"] += 1
        update(ADADELTA, (p, state["square_avg"], state["acc_delta"]), p.grad, group)
