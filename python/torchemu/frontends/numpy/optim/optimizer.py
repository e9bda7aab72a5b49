"""torch.optim.Optimizer: what optimizers have in common."""

from __future__ import annotations

import copy
import functools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from torchemu.frontends.numpy._autograd import record
from torchemu.frontends.numpy._grad_mode import enable_grad, no_grad
from torchemu.frontends.numpy._tensor import dispatch
from torchemu.frontends.numpy._tensor.conversion import converted, quietly
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn.modules._members import _typename
from torchemu.frontends.numpy.nn.modules.module import zero_
from torchemu.unsupported import unsupported

__all__ = ["Optimizer"]

ParamsT = Iterable[Any]


class Optimizer:
    """Changes parameters by their gradients. A subclass says how, in ``step``.

    Args:
        params: tensors, or pairs of a name and a tensor, or dicts: groups, with the tensors under "params" and options
            of their own.
        defaults: the options of groups that do not say otherwise.

    Attributes:
        param_groups: the groups, each a dict of "params" and options.
        state: what a subclass keeps about each tensor: tensor → dict.

    Raises:
        TypeError, ValueError: params are not what can be optimized.
    """

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + _typename(params)
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes the parameters.

        Args:
            closure: calculates the loss and its gradients anew; what it returns is returned.
        """
        raise NotImplementedError

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds tensors.

        Args:
            param_group: the tensors under "params", a tensor or a list; and options.

        Raises:
            TypeError, ValueError: not what can be optimized, or optimized already.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = dict(param_group)
        group["params"], names = _listed(group["params"])
        if names:
            group = {"params": group["params"], "param_names": names, **group}
        self._check_group(group["params"])
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self.param_groups.append(group)

    def _check_group(self, params: Sequence[Any]) -> None:
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {_typename(p)}")
            if not (p.is_leaf or self.defaults.get("differentiable")):
                raise ValueError("can't optimize a non-leaf Tensor")
        if len(params) != len(set(params)):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error",
                stacklevel=4,
            )
        if not set(params).isdisjoint(p for group in self.param_groups for p in group["params"]):
            raise ValueError("some parameters appear in more than one parameter group")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the gradients of all parameters, or makes them zero."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if set_to_none:
                    p.grad = None
                else:
                    zero_(p.grad)

    # -- saving

    def state_dict(self) -> dict[str, Any]:
        """The state and the groups, in which parameters are numbers in the order of the groups."""
        numbers: dict[int, int] = {}
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
        groups = [
            {**{k: v for k, v in group.items() if k != "params"}, "params": [numbers[id(p)] for p in group["params"]]}
            for group in self.param_groups
        ]
        state = {numbers[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what state_dict returned, for parameters in the same order.

        Raises:
            ValueError: the groups, or their sizes, are others.
        """
        saved = copy.deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for old, new in zip(saved, self.param_groups, strict=True):
            if len(old["params"]) != len(new["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
                )
        params = {
            number: p
            for old, new in zip(saved, self.param_groups, strict=True)
            for number, p in zip(old["params"], new["params"], strict=True)
        }
        self.state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            p = params.get(key)
            self.state[key if p is None else p] = _cast(value, p)
        for old, new in zip(saved, self.param_groups, strict=True):
            new.update({k: v for k, v in old.items() if k not in ("params", "param_names")})

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for number, group in enumerate(self.param_groups):
            options = "".join(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
            text += f"\nParameter Group {number}\n{options}"
        return text + ")"


def _listed(params: Any) -> tuple[list[Any], list[str]]:
    """The tensors of a group, and their names if it has such.

    Raises:
        TypeError: they have no order.
    """
    if isinstance(params, Tensor):
        return [params], []
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    listed = list(params)
    named = [p for p in listed if isinstance(p, tuple)]
    if named and len(named) != len(listed):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return [p for _, p in named] if named else listed, [name for name, _ in named]


def _cast(value: Any, p: Tensor | None, key: str = "") -> Any:
    """State as it is to be for a parameter: tensors of its dtype and where it is, but for the count of steps."""
    if isinstance(value, Tensor):
        if p is None or key == "step":
            return value
        return value.to(device=p.device, dtype=p.dtype if p.dtype.is_floating_point else None)
    if isinstance(value, dict):
        return {k: _cast(v, p, k) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_cast(v, p) for v in value])
    return value


def check_ways(differentiable: bool, foreach: bool | None, fused: bool | None) -> None:
    """Raises:
    RuntimeError: ways of calculating a step that exclude each other. NotImplementedError: gradients through steps.
    """
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    if differentiable:
        raise unsupported("an optimizer with differentiable=True", "no gradients go through its steps")


class PerParameter(Optimizer):
    """An optimizer that changes each parameter by its own gradient."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes the parameters; returns what the closure, if one is given, returns."""
        loss = evaluated(closure)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._update(p, group)
        return loss

    def _update(self, p: Tensor, group: dict[str, Any]) -> None:
        """Changes a parameter, which has a gradient."""
        raise NotImplementedError


def evaluated(closure: Callable[[], Any] | None) -> Any:
    """Returns what the closure returns, gradients being recorded in it."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


def update(op: dispatch.Op, targets: tuple[Tensor, ...], grad: Any, group: dict[str, Any], *params: Any) -> None:
    """Runs an operation that writes into several tensors; op.compute gets their arrays, the gradient's, the options of
    the group as they are now, and the rest."""
    params = ({name: _as_now(option) for name, option in group.items() if name != "params"}, *params)
    compute = functools.partial(quietly, op.compute)
    for t in targets:
        dispatch.check_writable(t)
    arrays = dispatch.read((*targets, grad))[1]
    if arrays is None:
        dispatch.written_later(op, targets, (grad,), compute, params)
    else:
        compute(*[t._write() for t in targets], arrays[-1], *params)
        dispatch._done(op, targets, (grad,), params)
    for t in targets:
        record.after_write(t, None)


def _as_now(option: Any) -> Any:
    """An option that no change reaches: the step may be put off until a scheduler has been at it."""
    if isinstance(option, tuple):
        return tuple([_as_now(each) for each in option])
    return option.item() if isinstance(option, Tensor) else option


def read_and_written(outputs: dispatch.Outputs, inputs: dispatch.Inputs) -> int:
    """The traffic of an update: what it writes it has read before."""
    return 2 * dispatch.bytes_of(outputs) + dispatch.bytes_of(inputs)


def store(target: Array, numbers: Array) -> None:
    """Writes results over an array, in its dtype."""
    target[...] = converted(numbers, target.dtype)


def like(p: Tensor, value: Tensor | None = None) -> Tensor:
    """State of a parameter's shape and dtype, where it is: zeros, or a copy of a tensor."""
    with no_grad():
        return p.detach().new_zeros(p.shape) if value is None else value.detach().clone()


Array = np.ndarray
