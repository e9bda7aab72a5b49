"""Schedules that rise and fall, start again, or end."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torchemu.optim._schedule import LRScheduler
from torchemu.optim.optimizer import Optimizer

__all__ = ["CosineAnnealingWarmRestarts", "OneCycleLR", "PolynomialLR"]


def _along_cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) / 2 * (1 + math.cos(math.pi * share))


def _along_line(start: float, end: float, share: float) -> float:
    return (end - start) * share + start


class OneCycleLR(LRScheduler):
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
