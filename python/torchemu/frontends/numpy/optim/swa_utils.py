"""torch.optim.swa_utils: models whose parameters are averages of another's."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import zeros
from torchemu.frontends.numpy.nn.modules.batchnorm import _BatchNorm
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.optim._cycles import _along_cosine, _along_line, _each
from torchemu.frontends.numpy.optim._schedule import LRScheduler
from torchemu.frontends.numpy.optim.optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Averaging = Callable[[Tensor, Tensor, Any], Tensor]
Several = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]


def _check_decay(decay: float) -> None:
    if not 0 <= decay <= 1:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay: float = 0.999) -> Averaging:
    """A function that gives an average and a parameter: decay·average + (1-decay)·parameter.

    Raises:
        ValueError: not between 0 and 1.
    """
    _check_decay(decay)

    @no_grad()
    def averaged(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return ema_param * decay + current_param * (1 - decay)

    return averaged


def get_swa_avg_fn() -> Averaging:
    """A function that gives the mean of all parameters so far."""

    @no_grad()
    def averaged(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return averaged


def get_ema_multi_avg_fn(decay: float = 0.999) -> Several:
    """A function that changes averages: by decay·average + (1-decay)·parameter.

    Raises:
        ValueError: not between 0 and 1.
    """
    _check_decay(decay)

    @no_grad()
    def average(ema_param_list: Sequence[Tensor], current_param_list: Sequence[Tensor], _: Any) -> None:
        _lerp(ema_param_list, current_param_list, 1 - decay)

    return average


def get_swa_multi_avg_fn() -> Several:
    """A function that changes averages: to the means of all parameters so far."""

    @no_grad()
    def average(averaged_param_list: Sequence[Tensor], current_param_list: Sequence[Tensor], num_averaged: Any) -> None:
        _lerp(averaged_param_list, current_param_list, 1 / (int(num_averaged) + 1))

    return average


def _lerp(averages: Sequence[Tensor], currents: Sequence[Tensor], weight: float) -> None:
    for average, current in zip(averages, currents, strict=True):
        if average.dtype.is_inexact:
            average.lerp_(current.to(average.dtype), weight)
        else:  # such as counts of batches
            average.copy_(average + (current - average) * weight)


class AveragedModel(Module):
    """A copy of a model, with averages of the parameters that it has at each call of update_parameters.

    Args:
        model: the model. Its first parameters are taken as they are.
        device: where the copy is to be.
        avg_fn: the next average of an average, a parameter, and how many it is of.
        multi_avg_fn: changes lists of averages, of parameters of one device and dtype. None of both: means.
        use_buffers: whether buffers are averaged too; else they are copied.

    Attributes:
        module: the copy.
        n_averaged: how many parameters the averages are of.

    Raises:
        AssertionError: both functions are given.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Averaging | None = None,
        multi_avg_fn: Several | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", zeros((), dtype="int64", device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the copy calculates."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Takes the model's parameters into the averages."""
        pairs = list(zip(self._averaged(self.module), self._averaged(model), strict=True))
        currents = [(mine.detach(), theirs.detach().to(mine.device)) for mine, theirs in pairs]
        if int(self.n_averaged) == 0:
            for mine, theirs in currents:
                mine.copy_(theirs)
        else:
            self._average(currents)
        if not self.use_buffers:
            for own, other in zip(self.module.buffers(), model.buffers(), strict=True):
                own.detach().copy_(other.detach().to(own.device))
        self.n_averaged += 1

    def _averaged(self, model: Module) -> Iterable[Tensor]:
        return itertools.chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()

    def _average(self, pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
        if self.avg_fn is not None:
            for mine, theirs in pairs:
                mine.copy_(self.avg_fn(mine, theirs, self.n_averaged.to(mine.device)))
            return
        average = get_swa_multi_avg_fn() if self.multi_avg_fn is None else self.multi_avg_fn
        kinds: dict[Any, list[tuple[Tensor, Tensor]]] = {}
        for pair in pairs:
            kinds.setdefault((str(pair[0].device), pair[0].dtype), []).append(pair)
        for group in kinds.values():
            averages, others = zip(*group, strict=True)
            average(averages, others, self.n_averaged.to(averages[0].device))


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Lets the batch normalizations of a model learn means and variances anew, from all that a loader has.

    Args:
        loader: batches; of a list or tuple the first element.
        model: called with each.
        device: where batches are to be.
    """
    layers = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not layers:
        return
    momenta, training = [layer.momentum for layer in layers], model.training
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
    model.train()
    for batch in loader:
        x = batch[0] if isinstance(batch, list | tuple) else batch
        model(x if device is None else x.to(device))
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """From the learning rates that an optimizer has to others, in some epochs, and no further.

    Args:
        optimizer: whose learning rates.
        swa_lr: the others: one number or one for each group.
        anneal_epochs: how many epochs.
        anneal_strategy: "cos" or "linear".
        last_epoch: as for LRScheduler.

    Raises:
        ValueError: a number or a strategy that cannot be. TypeError: no optimizer.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = _each("swa_lr", swa_lr, optimizer)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["swa_lr"] = rate
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch: int) -> float:
        """How far the way is gone."""
        along = max(0.0, min(1.0, epoch / max(1, self.anneal_epochs)))
        return 1 - _along_cosine(1, 0, along) if self._anneal_strategy == "cos" else _along_line(0, 1, along)

    def get_lr(self) -> list[Any]:
        """The learning rates of the groups."""
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(max(0, step - 1)), self._share(step)
        rates = []
        for group in self._groups():
            first = group["swa_lr"] if before == 1 else (group["lr"] - before * group["swa_lr"]) / (1 - before)
            rates.append(group["swa_lr"] * now + first * (1 - now))
        return rates
