"""ReduceLROnPlateau: learning rates that go down when there is no progress."""

from __future__ import annotations

import math
from typing import Any

from torchemu.frontends.numpy.nn.modules._members import _typename
from torchemu.frontends.numpy.optim._schedule import LRScheduler
from torchemu.frontends.numpy.optim.optimizer import Optimizer

__all__ = ["ReduceLROnPlateau"]


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the learning rates by a factor when a figure has not got better for some epochs.

    Args:
        optimizer: whose learning rates.
        mode: "min" or "max": what is better.
        factor: below 1.
        patience: after how many epochs without progress.
        threshold: by how much a figure has to be better.
        threshold_mode: "rel": that is a share of the best; "abs".
        cooldown: for how many epochs it looks at nothing afterwards.
        min_lr: what learning rates are at least, one number or one for each group.
        eps: a change less than this is none.

    Attributes:
        best: the best figure.
        num_bad_epochs: how many epochs without progress there have been.

    Raises:
        ValueError: a number or word that cannot be. TypeError: no optimizer.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{_typename(optimizer)} is not an Optimizer")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        groups = len(optimizer.param_groups)
        several = isinstance(min_lr, list | tuple)
        if several and len(min_lr) != groups:
            raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
        self.optimizer, self.factor, self.patience, self.eps = optimizer, factor, patience, eps
        self.min_lrs = list(min_lr) if several else [min_lr] * groups
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.cooldown, self.last_epoch = cooldown, 0
        self._last_lr = self._rates()
        self._reset()

    def _reset(self) -> None:
        self.best = math.inf if self.mode == "min" else -math.inf
        self.cooldown_counter = self.num_bad_epochs = 0

    def is_better(self, a: float, best: float) -> bool:
        """Whether a figure is better than the best so far."""
        sign = 1 if self.mode == "max" else -1
        edge = best * (1 + sign * self.threshold) if self.threshold_mode == "rel" else best + sign * self.threshold
        return sign * a > sign * edge

    @property
    def in_cooldown(self) -> bool:
        """Whether it looks at nothing."""
        return self.cooldown_counter > 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Ends an epoch with this figure, a number or a tensor of one."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._rates()

    def _reduce(self) -> None:
        for group, least in zip(self._groups(), self.min_lrs, strict=True):
            lower = max(group["lr"] * self.factor, least)
            if group["lr"] - lower > self.eps:
                group["lr"] = lower
