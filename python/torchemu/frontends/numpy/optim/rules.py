"""torch.optim.ASGD, Rprop, Adafactor and Muon: steps by averages, signs, factors and orthogonal matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._limits import finfo
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import full, ones
from torchemu.frontends.numpy._tensor.dispatch import Op
from torchemu.frontends.numpy._tensor.linalg import addmm
from torchemu.frontends.numpy._tensor.reductions import wide
from torchemu.frontends.numpy.optim.adaptive import _check, _count, _gradient
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

__all__ = ["ASGD", "Adafactor", "Muon", "Rprop"]


def _flops(outputs: Any, inputs: Any) -> int:
    return 12 * int(outputs[0].numel())


def _asgd(p: Array, average: Array, grad: Array, options: dict[str, Any], eta: float, mu: float) -> None:
    g = _gradient(p, grad, options)
    numbers = wide(p) * (1 - options["lambd"] * eta) - g * eta
    store(p, numbers)
    store(average, numbers if mu == 1 else wide(average) + (numbers - wide(average)) * mu)


def _rprop(p: Array, before: Array, size: Array, grad: Array, options: dict[str, Any]) -> None:
    g = -wide(grad) if options["maximize"] else wide(grad)
    (less, more), (least, most) = options["etas"], options["step_sizes"]
    turn = np.sign(g * wide(before))
    factor = np.where(turn > 0, more, np.where(turn < 0, less, 1)).astype(g.dtype)
    sizes = np.clip(wide(size) * factor, least, most)
    g = np.where(turn < 0, 0, g).astype(g.dtype)
    store(size, sizes)
    store(p, wide(p) - np.sign(g) * sizes)
    store(before, g)


ASGD_STEP, RPROP = (
    Op(name, compute, _flops, traffic=read_and_written) for name, compute in (("asgd", _asgd), ("rprop", _rprop))
)


class ASGD(PerParameter):
    """Steps that get shorter, and the average of where they lead, one kernel a parameter.

    With g = gradient + weight_decay·p and η = lr/(1 + lambd·lr·t)^alpha, p becomes p·(1 - lambd·η) - η·g in step t;
    from step t0 on the state "ax" is the mean of p.

    Args:
        params: tensors, or groups.
        lr, lambd, alpha, t0, weight_decay: as above.
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
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _check(lr=lr, weight_decay=weight_decay)
        check_ways(differentiable, foreach, None)
        defaults = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay}
        defaults |= {"foreach": foreach, "maximize": maximize}
        super().__init__(params, defaults | {"differentiable": differentiable, "capturable": capturable})

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        state, lr = self.state[p], float(group["lr"])
        if not state:
            state["step"], state["ax"] = _count(), like(p)
            state["eta"], state["mu"] = full((), lr, device="cpu"), ones((), device="cpu")
        state["step"] += 1
        t = state["step"].item()
        update(ASGD_STEP, (p, state["ax"]), p.grad, group, state["eta"].item(), state["mu"].item())
        state["eta"] = full((), lr / (1 + group["lambd"] * lr * t) ** group["alpha"], device="cpu")
        state["mu"] = full((), 1 / max(1, t - group["t0"]), device="cpu")


class Rprop(PerParameter):
    """Steps by the signs of the gradients, one kernel a parameter.

    Each element has a step size, at first lr, which grows while the sign stays and shrinks where it turns; there the
    element keeps its place.

    Args:
        params: tensors, or groups.
        lr: as above.
        etas: the factors by which step sizes shrink and grow.
        step_sizes: the smallest and the largest.
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
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check(lr=lr)
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        check_ways(differentiable, foreach, None)
        defaults = {"lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize}
        super().__init__(params, defaults | {"differentiable": differentiable, "capturable": capturable})

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        state = self.state[p]
        if not state:
            state["step"], state["prev"] = _count(), like(p)
            state["step_size"] = like(p).fill_(float(group["lr"]))
        state["step"] += 1
        update(RPROP, (p, state["prev"], state["step_size"]), p.grad, group)


# -- of whole matrices: made of ordinary operations


def _check_factors(lr: Any, beta2_decay: float, eps: tuple[float | None, float], d: float, decay: float) -> None:
    """Raises:
    ValueError: a number that cannot be.
    """
    if not lr >= 0:
        raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
    if not beta2_decay <= 0:
        raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
    if eps[0] is not None and not eps[0] >= 0:
        raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
    if not eps[1] >= 0:
        raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
    if not d >= 1:
        raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
    if not decay >= 0:
        raise ValueError(f"weight_decay should be >= 0 but is: {decay}")


class Adafactor(PerParameter):
    """Adam's second moment as the product of a column and a row, which take less memory than a matrix.

    With b = t^beta2_decay, the row r and the column c are means, with weight b for the newest, of the squares of the
    gradient along the last two dimensions, and v = r·c/mean(r); of a vector v is such a mean itself. With
    u = gradient/√max(v, ε₁²), p becomes p - a·u/max(1, rms(u)/d), a being min(lr, 1/√t)·max(ε₂, rms(p)). The host waits
    for both root mean squares, as PyTorch's does.

    Args:
        params: tensors, or groups.
        lr, beta2_decay, d: as above.
        eps: ε₁ and ε₂; None: the dtype's.
        weight_decay: p becomes p·(1 - lr·weight_decay) first.
        foreach: means nothing here.
        maximize: go up and not down.

    Raises:
        ValueError: a number that cannot be. RuntimeError: a complex parameter.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        _check_factors(lr, beta2_decay, eps, d, weight_decay)
        defaults = {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay}
        super().__init__(params, defaults | {"foreach": foreach, "maximize": maximize})

    @no_grad()
    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        if p.dtype.is_complex:
            raise RuntimeError("Adafactor does not support complex parameters")
        assert p.grad is not None
        grad = -p.grad if group["maximize"] else p.grad
        state = self._counted(p, grad)
        least, floor = group["eps"]
        least = finfo(p.dtype).eps if least is None else least
        t, lr = state["step"].item(), float(group["lr"])
        length = max(floor, _root_mean_square(p)) * min(lr, 1 / math.sqrt(t))
        if group["weight_decay"]:
            p.mul_(1 - lr * group["weight_decay"])
        change = _second_moment(state, grad, t ** group["beta2_decay"], least).clamp_(min=least * least).rsqrt_()
        change.mul_(grad)
        p.add_(change, alpha=-length / max(1.0, _root_mean_square(change) / group["d"]))

    def _counted(self, p: Tensor, grad: Tensor) -> dict[str, Any]:
        """The state, with one step more."""
        state = self.state[p]
        if not state:
            state["step"] = _count()
            if grad.dim() > 1:
                state["row_var"] = grad.new_zeros((*grad._shape[:-1], 1))
                state["col_var"] = grad.new_zeros((*grad._shape[:-2], 1, grad._shape[-1]))
            else:
                state["variance"] = like(p)
        state["step"] += 1
        return state


def _second_moment(state: dict[str, Any], grad: Tensor, weight: float, least: float) -> Tensor:
    """The means of the squares of the gradients, the newest having this weight."""
    if grad.dim() < 2:
        mean: Tensor = state["variance"].lerp_(grad * grad, weight)
        return mean.clone()
    for name, dim in (("row_var", -1), ("col_var", -2)):
        state[name].lerp_(grad.norm(dim=dim, keepdim=True).square_().div_(grad._shape[dim]), weight)
    rows: Tensor = state["row_var"]
    return (rows @ state["col_var"]).div_(rows.mean(dim=-2, keepdim=True).clamp_(min=least))


def _root_mean_square(t: Tensor) -> float:
    return float(t.norm(2).item() / math.sqrt(t.numel()))


class Muon(PerParameter):
    """Steps that are orthogonal matrices, nearly.

    With m = momentum·m + (1-momentum)·gradient, which counts momentum and the gradient the rest with nesterov, X is
    that divided by its norm, and ns_steps times, with coefficients a, b and c, A = X·Xᵀ and X = a·X + (b·A + c·A²)·X,
    in bfloat16. p becomes p·(1 - lr·weight_decay) - r·X.

    Args:
        params: matrices, or groups of such.
        lr, weight_decay, momentum, nesterov, ns_coefficients, ns_steps: as above.
        eps: the least norm.
        adjust_lr_fn: r is lr·√max(1, rows/columns) with "original" or None, and 0.2·lr·√max(rows, columns) with
            "match_rms_adamw".

    Raises:
        ValueError: a number that cannot be, or a parameter that is no matrix. RuntimeError: a complex one.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        for name, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not value >= 0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov}
        defaults |= {"ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps}
        super().__init__(params, defaults | {"adjust_lr_fn": adjust_lr_fn})
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}"
                    )

    @no_grad()
    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        if p.dtype.is_complex:
            raise RuntimeError("Muon does not support complex parameters")
        assert p.grad is not None
        grad, state = p.grad, self.state[p]
        if not state:
            state["momentum_buffer"] = like(grad)
        mean = state["momentum_buffer"].lerp_(grad, 1 - group["momentum"])
        change = _orthogonal(grad.lerp(mean, group["momentum"]) if group["nesterov"] else mean, group)
        lr, (rows, columns) = float(group["lr"]), p._shape
        rate = lr * math.sqrt(max(1, rows / columns))
        if group["adjust_lr_fn"] == "match_rms_adamw":
            rate = lr * 0.2 * math.sqrt(max(rows, columns))
        p.mul_(1 - lr * group["weight_decay"])
        p.add_(change, alpha=-rate)


def _orthogonal(matrix: Tensor, options: dict[str, Any]) -> Tensor:
    """A matrix of the same singular vectors, whose singular values are about 1."""
    a, b, c = options["ns_coefficients"]
    if options["ns_steps"] >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    tall = matrix._shape[0] > matrix._shape[1]
    x = (matrix.T if tall else matrix).to(dtypes.bfloat16)
    x = x / x.norm().clamp(min=options["eps"])
    for _ in range(options["ns_steps"]):
        gram = x @ x.T
        x = addmm(x, addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x
