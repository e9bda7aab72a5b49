"""pytest as a program of ranks, as with ``torchrun -m pytest``: each runs the tests, which meet in collectives.

Its modules are loaded once, as those of all installed packages: exceptions and marks are the same for the plugins and
helpers that ranks share. What its functions set on modules, monkeypatch's among them, is the rank's own, as where
a program sets it. So is what test files set, which pytest compiles itself.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import Any

from torchemu.launch import compiling
from torchemu.launch.patches import current
from torchemu.runtime.tasks import Unwound

_PACKAGES = frozenset({"_pytest", "pluggy", "pytest"})


def is_of_pytest(name: str) -> bool:
    """Reports whether a module, by its name, is a part of pytest."""
    return name.partition(".")[0] in _PACKAGES


def adapt(module: types.ModuleType, own_orders: bool) -> None:
    """Lets pytest do what ranks need, once one of its modules is loaded.

    Args:
        module: the module.
        own_orders: ranks go through sets in orders of their own.
    """
    if module.__name__ == "_pytest.assertion.rewrite":
        _adapt_compiling(module, own_orders)
        hook = module.AssertionRewritingHook
        hook._warn_already_imported = _but_for_ours(hook._warn_already_imported)
    elif module.__name__ == "_pytest.runner":
        module.CallInfo.from_call = classmethod(_silent_when_unwound(module.CallInfo.from_call.__func__))


def _adapt_compiling(module: types.ModuleType, own_orders: bool) -> None:
    """Lets pytest compile test files as other files of programs are. What it keeps of them is for ranks only."""
    rewrites = module.rewrite_asserts

    def rewrite_asserts(tree: ast.Module, *args: Any, **kwargs: Any) -> None:
        compiling.adapt(tree, own_orders)
        rewrites(ast.fix_missing_locations(tree), *args, **kwargs)

    tail = f"-ranks{compiling.way():08x}{'-orders' if own_orders else ''}{module.PYC_TAIL}"
    vars(module).update(rewrite_asserts=rewrite_asserts, PYC_TAIL=tail)


def _but_for_ours(warn: Callable[[Any, str], None]) -> Callable[[Any, str], None]:
    """Returns the hook's warning of plugins that are loaded before pytest, but for torchemu, which alone has to be."""

    def warn_already_imported(hook: Any, name: str) -> None:
        if name != "torchemu":
            warn(hook, name)

    return warn_already_imported


def _silent_when_unwound(from_call: Callable[..., Any]) -> Callable[..., Any]:
    """A rank that ends because another one has failed is no failure of its tests; a killed process prints nothing."""

    def call(cls: type, func: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
        def watched() -> Any:
            try:
                return func()
            except Unwound:
                process = current()
                if process is not None:
                    process.silence()
                raise

        return from_call(cls, watched, *args, **kwargs)

    return call
