"""Schedules that rise and fall, start again, or end."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torchemu.frontends.numpy.optim._schedule import LRScheduler
from torchemu.frontends.numpy.optim.optimizer import Optimizer

__all__ = ["CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR", "PolynomialLR"]


def _along_cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) / 2 * (1 + math.cos(math.pi * share))


def _along_line(start: float, end: float, share: float) -> float:
    return (end - start) * share + start


class _WithMomentum(LRScheduler):
    """A schedule that changes momentum, or β₁, too."""

    def _set_momenta(self, lowest: Any, highest: Any, last_epoch: int) -> None:
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in defaults
        if last_epoch != -1:
            return
        tops = _each("max_momentum", highest, self.optimizer)
        for group, top, low in zip(self._groups(), tops, _each("base_momentum", lowest, self.optimizer), strict=True):
            self._set_momentum(group, top)
            group["max_momentum"], group["base_momentum"] = top, low

    def _set_momentum(self, group: dict[str, Any], value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class OneCycleLR(_WithMomentum):
    """From a low learning rate up to the highest and down to nearly nothing; momentum goes the other way.

    Args:
        optimizer: whose learning rates.
        max_lr: the highest, one number or one for each group.
        total_steps: how many steps; None: epochs times steps_per_epoch.
        epochs, steps_per_epoch: see total_steps.
        pct_start: which share of the steps goes up.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: whether momentum, or β₁, changes too.
        base_momentum, max_momentum: between which it does; one number or one for each group.
        div_factor: the first learning rate is the highest divided by it.
        final_div_factor: the last one is the first divided by it.
        three_phase: go down to the first learning rate in as many steps as up, and from there to the last.
        last_epoch: as for LRScheduler.

    Raises:
        ValueError: a number that cannot be; step is called too often. TypeError: no optimizer.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = optimizer
        self.total_steps = _steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        up = pct_start * self.total_steps - 1
        again = [(2 * up, "max", "initial")] if three_phase else []
        end = (self.total_steps - 1.0, again[0][2] if again else "max", "min")
        self._schedule_phases = [(up, "initial", "max"), *again, end]
        if last_epoch == -1:
            self._set_rates(_each("max_lr", max_lr, optimizer), div_factor, final_div_factor)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._set_momenta(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _set_rates(self, highest: list[float], div_factor: float, final_div_factor: float) -> None:
        for group, rate in zip(self._groups(), highest, strict=True):
            group["initial_lr"] = rate / div_factor
            group["max_lr"] = rate
            group["min_lr"] = group["initial_lr"] / final_div_factor

    def get_lr(self) -> list[Any]:
        """The learning rates of the groups; sets the momenta."""
        self._warn_outside_step()
        at = self.last_epoch
        if at > self.total_steps:
            raise ValueError(f"Tried to step {at} times. The specified number of total steps is {self.total_steps}")
        ends = [end for end, _, _ in self._schedule_phases]
        phase = next((i for i, end in enumerate(ends) if at <= end), len(ends) - 1)
        end, first, last = self._schedule_phases[phase]
        start = ends[phase - 1] if phase else 0.0
        share = (at - start) / (end - start)
        rates = []
        for group in self._groups():
            rates.append(self._between(group[f"{first}_lr"], group[f"{last}_lr"], share))
            if self.cycle_momentum:
                low, top = group["base_momentum"], group["max_momentum"]
                before, behind = (low if name == "max" else top for name in (first, last))
                self._set_momentum(group, self._between(before, behind, share))
        return rates

    def _between(self, start: float, end: float, share: float) -> float:
        anneal: Callable[..., float] = _along_cosine if self._anneal_func_type == "cos" else _along_line
        return anneal(start, end, share)


_HEIGHTS: dict[str, tuple[str, Callable[[float, float], float]]] = {  # by what they count, and the height for that
    "triangular": ("cycle", lambda gamma, x: 1.0),
    "triangular2": ("cycle", lambda gamma, x: 1 / 2.0 ** (x - 1)),
    "exp_range": ("iterations", lambda gamma, x: gamma**x),
}


class CyclicLR(_WithMomentum):
    """Up and down along lines between two learning rates, again and again; momentum goes the other way.

    Args:
        optimizer: whose learning rates.
        base_lr, max_lr: between which; one number or one for each group.
        step_size_up: how many steps up.
        step_size_down: how many steps down; None: as many.
        mode: "triangular"; "triangular2": each cycle half as high as the one before; "exp_range": gamma to the power of
            the steps so far as high.
        gamma: see mode.
        scale_fn: how high, in the place of a mode: a function of scale_mode's count.
        scale_mode: "cycle": the number of the cycle, from 1; "iterations": that of the step.
        cycle_momentum: whether momentum, or β₁, changes too.
        base_momentum, max_momentum: between which it does; one number or one for each group.
        last_epoch: as for LRScheduler.

    Raises:
        ValueError: a mode or numbers that cannot be. TypeError: no optimizer.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        lowest, self.max_lrs = _each("base_lr", base_lr, optimizer), _each("max_lr", max_lr, optimizer)
        if last_epoch == -1:
            for group, rate in zip(self._groups(), lowest, strict=True):
                group["lr"] = rate
        if mode not in _HEIGHTS and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.total_size = float(step_size_up + (step_size_up if step_size_down is None else step_size_down))
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else _HEIGHTS[mode][0]
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._set_momenta(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lowest

    def scale_fn(self, x: float) -> float:
        """How high the cycle is."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return _HEIGHTS[self.mode][1](self.gamma, x)

    def get_lr(self) -> list[Any]:
        """The learning rates of the groups; sets the momenta."""
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        share = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height = share * self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group in self._groups():
                low, top = group["base_momentum"], group["max_momentum"]
                self._set_momentum(group, top - (top - low) * height)
        return [low + (top - low) * height for low, top in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """All about the scheduler but its optimizer and a function that was given."""
        return {key: value for key, value in super().state_dict().items() if key != "_scale_fn_custom"}


def _steps(total: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total is None and (epochs is None or steps_per_epoch is None):
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    given = {"total_steps": total} if total is not None else {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(value for value in given.values() if value is not None)


def _each(name: str, value: Any, optimizer: Optimizer) -> list[float]:
    """One number for each group."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        return [value] * groups
    if len(value) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
            f"param_groups has {groups}."
        )
    return list(value)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Down along a cosine, from the initial learning rate to eta_min, again and again.

    Args:
        optimizer: whose learning rates.
        T_0: how many epochs the first time.
        T_mult: by what that grows each time.
        eta_min: the lowest.
        last_epoch: as for LRScheduler.

    Raises:
        ValueError: T_0 or T_mult cannot be. TypeError: no optimizer.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,  # noqa: N803 (PyTorch's names)
        T_mult: int = 1,  # noqa: N803
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The learning rates of the groups."""
        self._warn_outside_step()
        return [_along_cosine(rate, self.eta_min, self.T_cur / self.T_i) for rate in self.base_lrs]

    def step(self, epoch: Any = None) -> None:
        """Goes on to the next epoch, or to one that is given, which may be a fraction.

        Raises:
            ValueError: a negative one.
        """
        if epoch is None and self.last_epoch >= 0:
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
            super().step(self.last_epoch + 1)
            return
        at = 0 if epoch is None else epoch
        if at < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        self.T_cur, self.T_i = at, self.T_0
        while self.T_cur >= self.T_i:
            self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
        super().step(math.floor(at))


class PolynomialLR(LRScheduler):
    """Down to 0 along a power of the epochs that are left.

    Args:
        optimizer: whose learning rates.
        total_iters: how many epochs.
        power: the power.
        last_epoch: as for LRScheduler.
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The learning rates of the groups."""
        self._warn_outside_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        left = 1 - self.last_epoch / self.total_iters
        return self._scaled((left / (1 - (self.last_epoch - 1) / self.total_iters)) ** self.power)

    def _get_closed_form_lr(self) -> list[Any]:
        left = 1 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [rate * left**self.power for rate in self.base_lrs]
