"""torch.nn.utils.weight_norm and spectral_norm: weights that a hook calculates before each call of their module."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn import functional as F  # noqa: N812 (its usual name)
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.parameter import Parameter
from torchemu.frontends.numpy.nn.utils.parametrizations import as_matrix, norm_except, usual_dim

M = TypeVar("M", bound=Module)


class _Hook:
    """What calculates a weight.

    Args:
        name: of the weight.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def weight(self, module: Module) -> Tensor:
        """The weight, from what the module has in its place."""
        raise NotImplementedError

    def __call__(self, module: Module, inputs: Any) -> None:
        """Called before the module is."""
        setattr(module, self.name, self.weight(module))


class WeightNorm(_Hook):
    """A weight as its lengths, name_g, and its directions, name_v."""

    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.dim = -1 if dim is None else dim

    def weight(self, module: Module) -> Tensor:
        """The lengths times the directions."""
        v: Tensor = getattr(module, f"{self.name}_v")
        return v * (getattr(module, f"{self.name}_g") / norm_except(v, self.dim))


class SpectralNorm(_Hook):
    """A weight name_orig divided by its largest singular value, whose vectors are name_u and name_v."""

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__(name)
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.n_power_iterations, self.dim, self.eps = n_power_iterations, dim, eps

    def weight(self, module: Module, iterate: bool | None = None) -> Tensor:
        """The weight divided; with power iterations before, unless iterate is False: in training."""
        original, u, v = (getattr(module, f"{self.name}_{what}") for what in ("orig", "u", "v"))
        matrix = as_matrix(original, self.dim)
        if module.training if iterate is None else iterate:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.T.mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
            u, v = u.clone(), v.clone()
        return original / u.dot(matrix.mv(v))


def _hook_of(module: Module, kind: type[_Hook], name: str) -> int | None:
    """The number of the hook that calculates a weight."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and hook.name == name:
            return number
    return None


def _check_once(module: Module, hook: _Hook, what: str) -> None:
    if _hook_of(module, type(hook), hook.name) is not None:
        raise RuntimeError(f"Cannot register two {what} hooks on the same parameter {hook.name}")


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Makes of a weight its lengths, name_g, and its directions, name_v.

    Args:
        module: whose.
        name: which.
        dim: of each index of this dimension there is a length; None: one for all.

    Raises:
        RuntimeError: that has been done already.
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    hook = WeightNorm(name, dim)
    _check_once(module, hook, "weight_norm")
    weight = getattr(module, name)
    del module._parameters[name]
    module.register_parameter(f"{name}_g", Parameter(norm_except(weight.detach(), hook.dim)))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    setattr(module, name, hook.weight(module))
    module.register_forward_pre_hook(hook)
    return module


def _removed(module: Module, kind: type[_Hook], name: str, what: str, others: tuple[str, ...]) -> None:
    number = _hook_of(module, kind, name)
    if number is None:
        raise ValueError(f"{what} of '{name}' not found in {module}")
    hook: Any = module._forward_pre_hooks.pop(number)
    with no_grad():
        weight = hook.weight(module, False) if kind is SpectralNorm else hook.weight(module)
    delattr(module, name)
    for other in others:
        delattr(module, f"{name}_{other}")
    module.register_parameter(name, Parameter(weight.detach()))


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Makes a weight one parameter again.

    Raises:
        ValueError: it is not by length and direction.
    """
    _removed(module, WeightNorm, name, "weight_norm", ("g", "v"))
    return module


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divides a weight, name_orig from now on, by its largest singular value.

    Args:
        module: whose.
        name: which.
        n_power_iterations: how many iterations there are each time, in training.
        eps: the least norm.
        dim: which dimension stands for what comes out; None: 1 of transposed convolutions, else 0.

    Raises:
        RuntimeError: that has been done already. ValueError: no iterations.
    """
    hook = SpectralNorm(name, n_power_iterations, usual_dim(module) if dim is None else dim, eps)
    _check_once(module, hook, "spectral_norm")
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    with no_grad():
        rows, columns = as_matrix(weight.detach(), hook.dim)._shape
        u, v = (F.normalize(weight.new_empty(n).normal_(0, 1), dim=0, eps=eps) for n in (rows, columns))
    del module._parameters[name]
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, weight.data)
    module.register_buffer(f"{name}_u", u)
    module.register_buffer(f"{name}_v", v)
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Makes a weight, divided as it is now, a parameter again.

    Raises:
        ValueError: it is not divided.
    """
    _removed(module, SpectralNorm, name, "spectral_norm", ("orig", "u", "v"))
    return module


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A module whose parameters have any values.

    Args:
        module_cls: its class.
        args, kwargs: of its making.
    """
    return module_cls(*args, **kwargs)
