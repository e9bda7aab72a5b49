"""torch.nn.utils.parametrize: parameters that are calculated from others each time they are used."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.copying import set_data
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn.modules.container import ModuleDict, ModuleList
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.parameter import Parameter
from torchemu.runtime.rank_local import RankLocal

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]


class _Cache:
    """What has been calculated in blocks of cached()."""

    def __init__(self) -> None:
        self.depth = 0
        self.values: dict[tuple[int, str], Tensor] = {}


_CACHES: RankLocal[_Cache] = RankLocal(_Cache)


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """A block in which each parameter is calculated once, and then kept."""
    cache = _CACHES.get()
    cache.depth += 1
    try:
        yield
    finally:
        cache.depth -= 1
        if not cache.depth:
            cache.values.clear()


class ParametrizationList(ModuleList):
    """The modules that a parameter is calculated by, one after another, and what from.

    Args:
        modules: those.
        original: what the parameter has been.
        unsafe: shape and dtype may change.

    Attributes:
        original: what it is calculated from; where the first module's right_inverse returns several tensors:
            original0, original1, ….
    """

    original: Tensor

    def __init__(self, modules: Any, original: Tensor, unsafe: bool = False) -> None:
        given = list(modules)
        if not given:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(given)
        self.unsafe = unsafe
        value = _inverted(given, original)
        self.is_tensor, self.ntensors = isinstance(value, Tensor), 1 if isinstance(value, Tensor) else len(value)
        kind = Parameter if isinstance(original, Parameter) else None
        if isinstance(value, Tensor):
            if value is not original:
                with no_grad():
                    set_data(original, value.detach())
            self._keep("original", original, kind)
        else:
            for number, part in enumerate(value):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "right_inverse must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                        f"{number} of the sequence with type {type(part).__name__}."
                    )
                made = Parameter(part.detach(), original.requires_grad) if kind else part
                self._keep(f"original{number}", made, kind)
        if not unsafe:
            self._check(original)

    def _keep(self, name: str, t: Tensor, kind: Any) -> None:
        if kind is None:
            self.register_buffer(name, t)
        else:
            self.register_parameter(name, t)  # type: ignore[arg-type]

    def _originals(self) -> list[Tensor]:
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def _check(self, original: Tensor) -> None:
        """Raises:
        ValueError: the result is another kind of tensor.
        """
        with no_grad():
            found = self()
        if not isinstance(found, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(found).__name__}.")
        for what, before, after in (("dtype", original.dtype, found.dtype), ("shape", original.shape, found.shape)):
            if before != after:
                raise ValueError(
                    f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is "
                    f"enabled.\nunparametrized {what}: {before}\nparametrized {what}: {after}"
                )

    def right_inverse(self, value: Tensor) -> None:
        """Changes what the parameter is calculated from so that it becomes a value, as the modules' right_inverse say.

        Raises:
            RuntimeError: a module has none.
        """
        with no_grad():
            found = _inverted(list(self), value, needed=True)
            for own, new in zip(self._originals(), [found] if isinstance(found, Tensor) else found, strict=True):
                set_data(own, new.detach().clone() if new is value else new.detach())

    def forward(self) -> Any:
        """The parameter."""
        first, *others = list(self)
        value = first(*self._originals())
        for module in others:
            value = module(value)
        return value


def _inverted(modules: list[Module], value: Any, needed: bool = False) -> Any:
    """What the modules would make this value of."""
    with no_grad():
        for module in reversed(modules):
            if hasattr(module, "right_inverse"):
                value = module.right_inverse(value)
            elif needed:
                raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
    return value


def _property(name: str) -> property:
    def get(self: Any) -> Any:
        cache = _CACHES.get()
        if not cache.depth:
            return self.parametrizations[name]()
        key = id(self), name
        if key not in cache.values:
            cache.values[key] = self.parametrizations[name]()
        return cache.values[key]

    def put(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


def _own_class(module: Module) -> None:
    """Gives the module a class of its own, in which parameters can be properties."""
    cls = type(module)

    def deepcopy(self: Any, memo: dict[int, Any]) -> Any:
        made = memo[id(self)] = self.__new__(type(self))
        made.__dict__ = copy.deepcopy(self.__dict__, memo)
        return made

    def reduced(self: Any, protocol: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See: "
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    body = {"__deepcopy__": deepcopy, "__reduce_ex__": reduced, "__module__": __name__}
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), body)
    module.parametrizations = ModuleDict()


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Lets a parameter or buffer be calculated by a module from what it has been.

    Args:
        module: whose.
        tensor_name: which.
        parametrization: from a tensor to one of the same shape and dtype; its method right_inverse, if it has one,
            from the latter to the former.
        unsafe: shape and dtype may change.

    Returns:
        The module, which has another class from now on.

    Raises:
        ValueError: there is no such parameter, or the result is another kind of tensor.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        found: Any = module.parametrizations
        several = found[tensor_name]
        if not unsafe:
            with no_grad():
                before = getattr(module, tensor_name)
                after = parametrization(before)
            if after.shape != before.shape or after.dtype != before.dtype:
                raise ValueError(
                    "Registering a parametrization may not change the shape of the tensor, unless `unsafe` flag is "
                    f"enabled.\nunparametrized shape: {before.shape}\nparametrized shape: {after.shape}"
                )
        several.append(parametrization)
        several.unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    made = ParametrizationList([parametrization], original, unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _own_class(module)
    setattr(type(module), tensor_name, _property(tensor_name))
    tables: Any = module.parametrizations
    tables[tensor_name] = made
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether one parameter, or any, of a module is calculated from others."""
    found = module._modules.get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Makes a parameter one of its own again.

    Args:
        module: whose.
        tensor_name: which.
        leave_parametrized: it stays what it is now; else it becomes again what it was calculated from.

    Raises:
        ValueError: it is not calculated from others, or from several and is to become these again.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    tables: Any = module.parametrizations
    several = tables[tensor_name]
    originals = several._originals()
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name).detach()
        original = originals[0] if several.is_tensor else None
        if original is None:
            learnt = any(t.requires_grad for t in originals)
            original = Parameter(value, learnt) if isinstance(originals[0], Parameter) else value
        else:
            set_data(original, value.clone())
    elif several.is_tensor:
        original = originals[0]
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms "
            "of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del tables[tensor_name]
    if not len(tables):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    if isinstance(original, Parameter):
        module.register_parameter(tensor_name, original)
    else:
        module.register_buffer(tensor_name, original)
    return module


def type_before_parametrizations(module: Module) -> type:
    """The module's class, without what parametrizations have made of it."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Lets a module's parameters be calculated as another's, from copies of what those are calculated from.

    Args:
        from_module, to_module: the modules.
        tensor_name: of which parameter; None: of all that are so.
    """
    if not is_parametrized(from_module):
        return to_module
    tables: Any = from_module.parametrizations
    for name in list(tables) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for module in tables[name]:
            register_parametrization(to_module, name, copy.deepcopy(module), unsafe=True)
        own: Any = to_module.parametrizations
        for mine, theirs in zip(own[name]._originals(), tables[name]._originals(), strict=True):
            set_data(mine, theirs.detach().clone())
    return to_module
