"""What schedules of learning rates have in common."""

from __future__ import annotations

import warnings
from typing import Any

from torchemu.frontends.numpy.nn.modules._members import _typename
from torchemu.frontends.numpy.optim.optimizer import Optimizer

__all__ = ["LRScheduler"]

_UNSAVED = ("optimizer",)


class LRScheduler:
    """Sets the learning rates of an optimizer's groups. A subclass says in ``get_lr`` which.

    Args:
        optimizer: whose learning rates; those that it has now are the initial ones.
        last_epoch: the number of the last epoch, to go on; -1: begin.

    Attributes:
        base_lrs: the initial learning rates of the groups.
        last_epoch: the number of the epoch, from 0.

    Raises:
        TypeError: no optimizer. KeyError: last_epoch is given, but the groups have no initial learning rate.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{_typename(optimizer)} is not an Optimizer")
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] when resuming scheduler with "
                    "last_epoch >= 0: load the optimizer's state, or begin with last_epoch=-1"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch, self._step_count = last_epoch, 0
        self._get_lr_called_within_step = False
        self._last_lr: list[Any] = []
        optimizer._stepped = False
        self._begin()

    def _begin(self) -> None:
        """Sets the first learning rates."""
        self._step_count, self._is_initial = 0, True
        self.step()
        self._is_initial = False

    def get_lr(self) -> list[Any]:
        """The learning rates of the groups for the epoch last_epoch."""
        raise NotImplementedError

    def get_last_lr(self) -> list[Any]:
        """The learning rates that the last step has set."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Goes on to the next epoch, or to one that is given, and sets the learning rates."""
        if self._step_count == 1 and not self.optimizer._stepped:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, "
                "you should call them in the opposite order: otherwise the first value of the schedule is skipped.",
                stacklevel=2,
            )
        self._step_count += 1
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._get_lr_called_within_step = True
        rates = self.get_lr() if epoch is None else self._rates_of_given_epoch()
        self._get_lr_called_within_step = False
        for group, rate in zip(self._groups(), rates, strict=True):
            group["lr"] = rate
        self._last_lr = [group["lr"] for group in self._groups()]

    def _rates_of_given_epoch(self) -> list[Any]:
        closed_form = getattr(self, "_get_closed_form_lr", self.get_lr)
        return closed_form()

    def _groups(self) -> list[dict[str, Any]]:
        return self.optimizer.param_groups

    def _rates(self) -> list[Any]:
        return [group["lr"] for group in self._groups()]

    def _scaled(self, factor: float) -> list[Any]:
        return [rate * factor for rate in self._rates()]

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", stacklevel=3
            )

    def state_dict(self) -> dict[str, Any]:
        """All about the scheduler but its optimizer."""
        return {key: value for key, value in vars(self).items() if key not in _UNSAVED}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what state_dict returned."""
        vars(self).update(state_dict)
