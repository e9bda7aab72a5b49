"""torch.optim.LBFGS: Newton's method with what is known of the curvature from the last steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.complex_numbers import view_as_real
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.joining import cat
from torchemu.frontends.numpy.optim.adaptive import _check
from torchemu.frontends.numpy.optim.optimizer import Optimizer, ParamsT, evaluated

__all__ = ["LBFGS"]


class Trial(NamedTuple):
    """A place on the line that is searched.

    Attributes:
        t: how far along the direction.
        loss: there.
        grad: there, all parameters' in one vector.
        slope: the derivative of the loss by t.
    """

    t: float
    loss: float
    grad: Tensor
    slope: float


class LBFGS(Optimizer):
    """Quasi-Newton steps: each may evaluate the loss many times. The host waits for every loss, as PyTorch's does.

    Args:
        params: real tensors; one group only.
        lr: the length of a step, or with a line search its first trial.
        max_iter: of iterations a step.
        max_eval: of evaluations of the loss a step; None: 1.25·max_iter.
        tolerance_grad: a step ends where no element of the gradient is larger,
        tolerance_change: or where nothing changes more than this.
        history_size: how many changes of the gradient are kept.
        line_search_fn: "strong_wolfe", or None.

    Raises:
        ValueError: a number that cannot be, or several groups.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        _check(lr=lr)
        defaults = {"lr": lr, "max_iter": max_iter, "tolerance_grad": tolerance_grad, "history_size": history_size}
        defaults |= {"max_eval": max_iter * 5 // 4 if max_eval is None else max_eval}
        super().__init__(params, defaults | {"tolerance_change": tolerance_change, "line_search_fn": line_search_fn})
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params: list[Tensor] = self.param_groups[0]["params"]

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes the parameters.

        Args:
            closure: calculates the loss and its gradients anew.

        Returns:
            The loss before the step.

        Raises:
            TypeError: no closure. RuntimeError: no such line search.
        """
        if closure is None:
            raise TypeError("LBFGS.step() missing 1 required positional argument: 'closure'")
        group, state = self.param_groups[0], self.state[self._params[0]]
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        before = evaluated(closure)
        loss, grad, evaluations = float(before), self._gathered(), 1
        state.setdefault("n_iter", 0)
        state["func_evals"] = state.get("func_evals", 0) + 1
        if float(grad.abs().max()) <= group["tolerance_grad"]:
            return before
        for iteration in range(1, group["max_iter"] + 1):
            start = self._aimed(state, group, loss, grad)
            if start.slope > -group["tolerance_change"]:
                break
            last = iteration == group["max_iter"]
            if group["line_search_fn"] is None:
                trial, count = self._moved(closure, start, state["d"], last)
            else:
                trial, count = self._searched(closure, start, state["d"], group["max_eval"] - evaluations)
            loss, grad, evaluations = trial.loss, trial.grad, evaluations + count
            state["t"], state["func_evals"] = trial.t, state["func_evals"] + count
            change = float((state["d"] * trial.t).abs().max()) if not last else 0.0
            if last or evaluations >= group["max_eval"] or float(grad.abs().max()) <= group["tolerance_grad"]:
                break
            if change <= group["tolerance_change"] or abs(loss - start.loss) < group["tolerance_change"]:
                break
        return before

    def _aimed(self, state: dict[str, Any], group: dict[str, Any], loss: float, grad: Tensor) -> Trial:
        """Chooses a direction, which is in the state from then on. Returns the place: its t is the first trial's."""
        state["n_iter"] += 1
        lr = float(group["lr"])
        if state["n_iter"] == 1:
            state["d"], state["old_dirs"], state["old_stps"], state["ro"], state["H_diag"] = grad.neg(), [], [], [], 1
            t = min(1.0, 1.0 / float(grad.abs().sum())) * lr
        else:
            _learn(state, grad, group["history_size"])
            state["d"] = _newton(state, grad)
            t = lr
        state["prev_flat_grad"], state["prev_loss"] = grad.clone(), loss
        return Trial(t, loss, grad, float(grad.dot(state["d"])))

    def _moved(self, closure: Callable[[], Any], start: Trial, direction: Tensor, last: bool) -> tuple[Trial, int]:
        """Changes the parameters as far as is said. Returns where they are, and how many evaluations it took; after the
        last step nobody looks."""
        self._add(start.t, direction)
        return (start, 0) if last else (self._evaluated(closure, start.t, direction), 1)

    def _searched(self, closure: Callable[[], Any], start: Trial, direction: Tensor, trials: int) -> tuple[Trial, int]:
        """Changes the parameters along the direction as far as is good."""
        origin = [p.clone() for p in self._params]

        def at(t: float) -> Trial:
            self._add(t, direction)
            trial = self._evaluated(closure, t, direction)
            for p, value in zip(self._params, origin, strict=True):
                p.copy_(value)
            return trial

        search = _LineSearch(at, start, float(direction.abs().max()), trials)
        found = search.run()
        self._add(found.t, direction)
        return found, search.evaluations

    def _evaluated(self, closure: Callable[[], Any], t: float, direction: Tensor) -> Trial:
        loss = float(evaluated(closure))
        grad = self._gathered()
        return Trial(t, loss, grad, float(grad.dot(direction)))

    def _gathered(self) -> Tensor:
        """The gradients of all parameters in one vector."""
        grads = [p.new_zeros(p._shape) if p.grad is None else p.grad for p in self._params]
        return cat([(view_as_real(g) if g.dtype.is_complex else g).reshape(-1) for g in grads])

    def _add(self, t: float, direction: Tensor) -> None:
        parameters = [view_as_real(p) if p.dtype.is_complex else p for p in self._params]
        parts = direction.split([p.numel() for p in parameters])
        for p, part in zip(parameters, parts, strict=True):
            p.add_(part.view_as(p), alpha=t)


def _learn(state: dict[str, Any], grad: Tensor, history_size: int) -> None:
    """Keeps how the gradient has changed by the last step, if the loss curves upwards there."""
    change, moved = grad - state["prev_flat_grad"], state["d"] * state["t"]
    curvature = change.dot(moved)
    if float(curvature) <= 1e-10:
        return
    for name, value in (("old_dirs", change), ("old_stps", moved), ("ro", 1 / curvature)):
        if len(state[name]) == history_size:
            state[name].pop(0)
        state[name].append(value)
    state["H_diag"] = curvature / change.dot(change)


def _newton(state: dict[str, Any], grad: Tensor) -> Tensor:
    """The approximate inverse of the Hessian, by the two loops over what is kept, times the negative gradient."""
    kept = list(zip(state["old_dirs"], state["old_stps"], state["ro"], strict=True))
    direction, shares = grad.neg(), []
    for change, moved, inverse in reversed(kept):
        shares.append(moved.dot(direction) * inverse)
        direction.sub_(change * shares[-1])
    direction.mul_(state["H_diag"])
    for (change, moved, inverse), share in zip(kept, reversed(shares), strict=True):
        direction.add_(moved * (share - change.dot(direction) * inverse))
    return direction


# -- the search along a line


_SUFFICIENT, _FLAT, _LEAST = 1e-4, 0.9, 1e-9


class _LineSearch:
    """Looks for a place where the loss has fallen enough and its slope is flat enough: Wolfe's strong conditions.

    Args:
        at: evaluates a place.
        start: where the search begins; its t is the first trial's.
        reach: the largest element of the direction. Where no parameter moves by more than 1e-9 the search ends.
        trials: how many there may be after the first.
    """

    def __init__(self, at: Callable[[float], Trial], start: Trial, reach: float, trials: int) -> None:
        self._at, self._first, self._reach, self._trials = at, start.t, reach, trials
        self._origin = start._replace(t=0.0)
        self.evaluations = 0

    def run(self) -> Trial:
        """The place that is found, or the best one known when the trials are used up."""
        low, high = self._bracketed()
        stuck = False
        while low is not high and self.evaluations <= self._trials:
            if abs(high.t - low.t) * self._reach < _LEAST:
                break
            t, stuck = _inside(low, high, stuck)
            trial = self._evaluate(t)
            if self._is_high(trial) or trial.loss >= low.loss:
                low, high = (trial, low) if trial.loss < low.loss else (low, trial)
                continue
            if self._is_flat(trial):
                return trial
            low, high = trial, low if trial.slope * (high.t - low.t) >= 0 else high
        return low

    def _evaluate(self, t: float) -> Trial:
        self.evaluations += 1
        return self._at(t)

    def _is_high(self, trial: Trial) -> bool:
        return trial.loss > self._origin.loss + _SUFFICIENT * trial.t * self._origin.slope

    def _is_flat(self, trial: Trial) -> bool:
        return trial is not self._origin and abs(trial.slope) <= -_FLAT * self._origin.slope

    def _bracketed(self) -> tuple[Trial, Trial]:
        """Two places, the lower one first, between which there is one that will do; or twice one that does."""
        before, trial = self._origin, self._evaluate(self._first)
        for count in range(self._trials):
            if self._is_high(trial) or (count > 1 and trial.loss >= before.loss):
                break
            if self._is_flat(trial):
                return trial, trial
            if trial.slope >= 0:
                break
            farther = trial.t + 0.01 * (trial.t - before.t), trial.t * 10
            before, trial = trial, self._evaluate(_lowest(before, trial, farther))
        else:
            before = self._origin
        return (before, trial) if before.loss <= trial.loss else (trial, before)


def _inside(low: Trial, high: Trial, stuck: bool) -> tuple[float, bool]:
    """Where to try next between two places; and whether that is next to one of them, which is not to happen twice."""
    left, right = (low, high) if low.t <= high.t else (high, low)
    t, margin = _lowest(left, right, (left.t, right.t)), 0.1 * (right.t - left.t)
    if min(right.t - t, t - left.t) >= margin:
        return t, False
    if not stuck and left.t < t < right.t:
        return t, True
    return (right.t - margin if right.t - t < t - left.t else left.t + margin), False


def _lowest(a: Trial, b: Trial, bounds: tuple[float, float]) -> float:
    """Where the cubic through two places with their slopes is lowest within bounds; if nowhere, their middle."""
    if a.t > b.t:
        a, b = b, a
    mean = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = mean * mean - a.slope * b.slope
    if not square >= 0:
        return sum(bounds) / 2
    root = float(square**0.5)
    divisor = b.slope - a.slope + 2 * root
    t = b.t - (b.t - a.t) * ((b.slope + root - mean) / divisor) if divisor else sum(bounds) / 2
    return min(max(t, bounds[0]), bounds[1])
