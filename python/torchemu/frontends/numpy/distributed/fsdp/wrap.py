"""torch.distributed.fsdp.wrap: which parts of a module become units of their own."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torchemu.frontends.numpy.nn.modules.attention import MultiheadAttention
from torchemu.frontends.numpy.nn.modules.container import ModuleDict, ModuleList
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.runtime.rank_local import RankLocal

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]

_wrapping: RankLocal[dict[str, Any] | None] = RankLocal(lambda: None)

Chosen = dict[Module, dict[str, Any]]
"""The modules that become units, with the arguments that are theirs."""


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Every module becomes a unit."""
    return True


class ModuleWrapPolicy:
    """Modules of some classes become units.

    Args:
        module_classes: the classes.
    """

    def __init__(self, module_classes: Iterable[type[Module]]) -> None:
        self._module_classes = set(module_classes)

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        """As lambda_auto_wrap_policy."""
        return recurse or isinstance(module, tuple(self._module_classes))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._module_classes})"


class CustomPolicy:
    """A function says of each module whether it becomes a unit: False, True, or a dict of arguments of its own.

    Args:
        lambda_fn: the function.
    """

    def __init__(self, lambda_fn: Callable[[Module], bool | dict[str, Any]]) -> None:
        self._lambda_fn = lambda_fn

    def chosen(self, root: Module) -> Chosen:
        """The modules in a module, itself among them, that become units.

        Raises:
            ValueError: the function returns something else.
        """
        found: Chosen = {}
        for module in root.modules():
            answer = self._lambda_fn(module)
            if not isinstance(answer, bool | dict):
                raise ValueError(
                    "The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict, but it returned "
                    f"{answer}"
                )
            if answer:
                found[module] = answer if isinstance(answer, dict) else {}
        return found


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]
) -> bool:
    """Modules for which a function says so become units."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: set[type[Module]]
) -> bool:
    """Modules of some classes, a transformer's layers, become units."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: set[type[Module]] | None = None,
    exclude_wrap_modules: set[type[Module]] | None = None,
) -> bool:
    """Modules with so many elements in parameters, of which no part is a unit, become units.

    Args:
        min_num_params: how many.
        force_leaf_modules: classes of modules of which no part becomes a unit; None: MultiheadAttention.
        exclude_wrap_modules: classes of modules that become none; None: ModuleList and ModuleDict.
    """
    leaves = {MultiheadAttention} if force_leaf_modules is None else force_leaf_modules
    never = {ModuleList, ModuleDict} if exclude_wrap_modules is None else exclude_wrap_modules
    return nonwrapped_numel >= min_num_params and not isinstance(module, tuple(leaves if recurse else never))


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """Inside it wrap() makes units.

    Args:
        wrapper_cls: of what class.
        wrapper_kwargs: its arguments.
    """
    before = _wrapping.get()
    _wrapping.set({"wrapper_cls": wrapper_cls, **wrapper_kwargs})
    try:
        yield
    finally:
        _wrapping.set(before)


def wrap(module: Module, **wrap_overrides: Any) -> Any:
    """The module as a unit, inside of enable_wrap; else as it is.

    Args:
        wrap_overrides: arguments in the place of enable_wrap's.
    """
    settings = _wrapping.get()
    if settings is None:
        return module
    arguments = {**settings, **wrap_overrides}
    return arguments.pop("wrapper_cls")(module, **arguments)


def wrap_parts(root: Module, policy: Any, ignored: set[Module], make: Callable[..., Module]) -> None:
    """Replaces the parts of a module that a policy chooses by units, inner ones first. The module itself stays.

    Args:
        policy: as auto_wrap_policy.
        ignored: modules that are left alone.
        make: makes a unit of a module, with the keyword arguments that are the module's own.
    """
    if isinstance(policy, CustomPolicy):
        _wrap_chosen(root, policy.chosen(root), ignored, make)
        return
    by_keyword = "nonwrapped_numel" in inspect.signature(policy).parameters
    ask = (lambda m, r, n: policy(module=m, recurse=r, nonwrapped_numel=n)) if by_keyword else policy
    _wrap_by_size(root, ask, ignored, make)


def _wrap_chosen(module: Module, chosen: Chosen, ignored: set[Module], make: Callable[..., Module]) -> None:
    for name, child in list(module.named_children()):
        if child in ignored:
            continue
        _wrap_chosen(child, chosen, ignored, make)
        if child in chosen:
            setattr(module, name, make(child, **chosen[child]))


def _wrap_by_size(module: Module, ask: Callable[..., bool], ignored: set[Module], make: Callable[..., Module]) -> int:
    """How many elements of the module's parameters have become part of units."""
    numel = _size(module, ignored)
    if not ask(module, True, numel):
        return 0
    wrapped = 0
    for name, child in list(module.named_children()):
        if child in ignored:
            continue
        inner = _wrap_by_size(child, ask, ignored, make)
        rest = _size(child, ignored) - inner
        if ask(child, False, rest):
            setattr(module, name, make(child))
            inner += rest
        wrapped += inner
    return wrapped


def _size(module: Module, ignored: set[Module]) -> int:
    """The number of elements, those of units included."""
    left_out = {id(p) for each in ignored for p in each.parameters()}
    own = sum(p.numel() for p in module.parameters() if id(p) not in left_out)
    return own + sum(getattr(each, "hidden_numel", 0) for each in module.modules())
