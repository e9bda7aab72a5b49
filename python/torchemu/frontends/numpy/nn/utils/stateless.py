"""torch.nn.utils.stateless: modules called with other parameters and buffers than their own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.nn.modules.module import Module

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """What a module returns with other parameters and buffers; afterwards it has its own again.

    Args:
        module: the module.
        parameters_and_buffers: tensors by name, or several such dicts; the module's own in the place of others.
        args, kwargs: of the call; args is a tuple, or the only one.
        tie_weights: what several names stand for is replaced under all of them.
        strict: all names are to be given, and no others.

    Raises:
        ValueError: a name is in several dicts, or tied names have different tensors.
        RuntimeError: names are missing or unknown, and strict.
    """
    given = _together(parameters_and_buffers)
    if strict:
        _check_names(module, given)
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, _tied(module, given) if tie_weights else given):
        return module(*arguments, **(kwargs or {}))


def _together(given: Any) -> dict[str, Tensor]:
    if isinstance(given, dict):
        return given
    if not isinstance(given, Sequence):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(given)}"
        )
    names = [name for each in given for name in each]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for each in given for name, value in each.items()}


def _own(module: Module) -> dict[str, Tensor]:
    """All parameters and buffers, each under all its names."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _check_names(module: Module, given: dict[str, Tensor]) -> None:
    own = _own(module)
    unknown, missing = ([repr(n) for n in a if n not in b] for a, b in ((given, own), (own, given)))
    text = "\n\t".join([
        *([f"Unexpected key(s): {', '.join(unknown)}."] if unknown else []),
        *([f"Missing key(s): {', '.join(missing)}."] if missing else []),
    ])  # fmt: skip
    if text:
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t{text}")


def _tied(module: Module, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same, and what is given under all names of each tensor."""
    names: dict[int, list[str]] = {}
    own = _own(module)
    for name, t in own.items():
        names.setdefault(id(t), []).append(name)
    found = dict(given)
    for group in names.values():
        values = {id(given[name]): given[name] for name in group if name in given}
        if len(values) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(n for n in group if n in given)}, which are "
                "tied. Consider using tie_weights=False"
            )
        for value in values.values():
            found |= dict.fromkeys(group, value)
    return found


@contextlib.contextmanager
def _replaced(module: Module, given: dict[str, Tensor]) -> Iterator[None]:
    """Lets the module have these tensors for a while."""
    kept: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for path, value in given.items():
            prefix, _, name = path.rpartition(".")
            with contextlib.suppress(AttributeError):
                owner = module.get_submodule(prefix)
                table: dict[str, Any] = owner._parameters if name in owner._parameters else owner._buffers
                if name in table:
                    kept.append((table, name, table[name]))
                    table[name] = value
        yield
    finally:
        for table, name, value in reversed(kept):
            table[name] = value
