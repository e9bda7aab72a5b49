"""torch.amp.GradScaler: keeps gradients of float16 from becoming zero, by a factor for the loss."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.conversion import converted
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import full
from torchemu.frontends.numpy._tensor.dispatch import Op, _op_in_place, flop_per_input
from torchemu.frontends.numpy._tensor.reductions import wide

__all__ = ["GradScaler", "OptState"]

_NOT_SCALED = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
_NEW_SCALE = (
    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with requires_grad=False."
)


class OptState(enum.Enum):
    """How far an optimizer is in this iteration."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


@dataclass
class _Progress:
    """Of one optimizer: how far it is, and whether its gradients have infinities or NaN (1) or not (0)."""

    stage: OptState = OptState.READY
    found_inf: Tensor | None = None


def _unscale(grad: np.ndarray, inverse: np.ndarray) -> None:
    np.copyto(grad, converted(wide(grad) * inverse, grad.dtype))


def _note_non_finite(found: np.ndarray, grad: np.ndarray) -> None:
    if not np.isfinite(wide(grad)).all():
        found[...] = 1


UNSCALE = Op("amp_unscale_", _unscale)
NOTE_NON_FINITE = Op("amp_non_finite_check_", _note_non_finite, flop_per_input)


class GradScaler:
    """Multiplies losses by a scale, and divides the gradients by it before the optimizer's step. A step whose gradients
    have infinities or NaN is left out and the scale made smaller; after many steps without any it is made larger.

    Args:
        device: kind of device that a new scale given to update must be on.
        init_scale: the first scale.
        growth_factor: by what it is made larger; above 1.
        backoff_factor: by what it is made smaller; below 1.
        growth_interval: after how many steps one after the other it is made larger.
        enabled: False leaves everything as it is; steps are the optimizer's.

    Raises:
        AssertionError: one of the factors is not as it must be.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device, self._enabled = device, enabled
        if not enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._init_growth_tracker = init_scale, 0
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._progress: defaultdict[int, _Progress] = defaultdict(_Progress)

    def _made(self, function: str) -> tuple[Tensor, Tensor]:
        """The scale and the number of good steps since it has changed.

        Raises:
            AssertionError: nothing has been scaled yet.
        """
        if self._scale is None or self._growth_tracker is None:
            raise AssertionError(f"Attempted {function} but _scale is None.  {_NOT_SCALED}")
        return self._scale, self._growth_tracker

    def scale(self, outputs: Any) -> Any:
        """A tensor, or all in lists and tuples of them, times the scale.

        Raises:
            ValueError: something else.
        """
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._scale = full((), self._init_scale, dtype=dtypes.float32, device=outputs.device)
                self._growth_tracker = full((), self._init_growth_tracker, dtype=dtypes.int32, device=outputs.device)
            return outputs * self._scale.to(device=outputs.device, non_blocking=True)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, list | tuple) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divides the optimizer's gradients by the scale, before its step does: to clip them, for example.

        Raises:
            RuntimeError: that has been done since the last update. ValueError: gradients of float16.
            AssertionError: nothing has been scaled yet.
        """
        if not self._enabled:
            return
        scale, _ = self._made("unscale_")
        progress = self._progress[id(optimizer)]
        if progress.stage is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if progress.stage is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = scale.double().reciprocal().float()
        progress.found_inf = self._unscale_grads(optimizer, inverse)
        progress.stage = OptState.UNSCALED

    @no_grad()
    def _unscale_grads(self, optimizer: Any, inverse: Tensor) -> Tensor | None:
        """Divides them; returns whether there is one that is not finite, None where there are no gradients."""
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if any(grad.dtype is dtypes.float16 for grad in grads):
            raise ValueError("Attempting to unscale FP16 gradients.")
        if not grads:
            return None
        found = full((), 0.0, dtype=dtypes.float32, device=inverse.device)
        for grad in grads:
            _op_in_place(NOTE_NON_FINITE, found, (grad,))
            _op_in_place(UNSCALE, grad, (inverse.to(grad.device),))
        return found

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's step, called with args and kwargs, unless a gradient is not finite; then None. Gradients are
        divided by the scale first, if they are not yet.

        Raises:
            RuntimeError: it has been called since the last update, or with a closure.
            AssertionError: nothing has been scaled yet, or there are no gradients.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._made("step")
        progress = self._progress[id(optimizer)]
        if progress.stage is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if progress.stage is OptState.READY:
            self.unscale_(optimizer)
        if progress.found_inf is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if progress.found_inf.item() else optimizer.step(*args, **kwargs)
        progress.stage = OptState.STEPPED
        return result

    @no_grad()
    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Ends an iteration: makes the scale smaller if a step has been left out, larger if it is time, or sets it.

        Raises:
            AssertionError: nothing has been scaled yet, no step been asked for, or new_scale is not one number.
        """
        if not self._enabled:
            return
        scale, tracker = self._made("update")
        if new_scale is None:
            self._adapt(scale, tracker)
        elif isinstance(new_scale, float):
            scale.fill_(new_scale)
        elif new_scale.device.type != self._device or new_scale.numel() != 1 or new_scale.requires_grad:
            raise AssertionError(_NEW_SCALE)
        else:
            scale.copy_(new_scale)
        self._progress.clear()

    def _adapt(self, scale: Tensor, tracker: Tensor) -> None:
        found = [progress.found_inf for progress in self._progress.values() if progress.found_inf is not None]
        if not found:
            raise AssertionError("No inf checks were recorded prior to update.")
        if any(each.item() for each in found):
            scale.mul_(self._backoff_factor)
            tracker.zero_()
            return
        good = int(tracker.item()) + 1
        if good == self._growth_interval:
            grown = scale * self._growth_factor
            if grown.isfinite().item():
                scale.copy_(grown)
            good = 0
        tracker.fill_(good)

    # -- what it is made of

    def get_scale(self) -> float:
        """The scale; 1 where disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def get_growth_factor(self) -> float:
        """By what the scale is made larger."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Makes it another."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """By what the scale is made smaller."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Makes it another."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps the scale is made larger."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Makes it another."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The scale, the factors, the interval, the number of steps since the scale has changed; {} where disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from what state_dict returned.

        Raises:
            RuntimeError: an empty one.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale, self._init_growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        if self._enabled:
            if self._progress:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update()."
                )
            state |= {"_init_scale": self.get_scale(), "_init_growth_tracker": self._get_growth_tracker()}
            state |= {"_scale": None, "_growth_tracker": None}
        return state
