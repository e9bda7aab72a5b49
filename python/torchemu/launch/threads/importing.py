"""The import statement, by which programs get their rank's own modules for threads."""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torchemu.launch.loops import Loops
from torchemu.launch.modules import Rules
from torchemu.launch.patches import current, replace
from torchemu.launch.threads import servers

if TYPE_CHECKING:
    from torchemu.launch.threads.copies import Copies

_PACKAGES = frozenset({"_thread", "_threading_local", "concurrent", "multiprocessing", "queue", "threading"})
_COPY = "__torchemu_copies__"  # copies.COPY: that module is loaded where it is needed


def install(stack: contextlib.ExitStack, rules: Rules) -> None:
    """Makes import statements of a rank's program give it the rank's own modules, until the stack is closed.

    Args:
        stack: undoes it.
        rules: which modules are the program's.
    """
    real, loops, made = builtins.__import__, Loops(stack), servers.Servers(stack)

    def importing(
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 (Python's names)
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if globals is not None and (level or name.partition(".")[0] in _PACKAGES or _COPY in globals):
            module = _of_rank(rules, _absolute(name, globals, level), globals, tuple(fromlist or ()))
            if module is not None:
                return module
        module = real(name, globals, locals, fromlist or (), level)
        if name.startswith("asyncio") and not level:
            loops.install()
        if name == servers.MODULE:
            made.install()
        return module

    loops.install()
    replace(stack, builtins, "__import__", importing)


def _absolute(name: str, variables: Mapping[str, Any], level: int) -> str:
    """The whole name of what a module imports."""
    package = variables.get("__package__") or ""
    if not level or not package:
        return name
    return ".".join(filter(None, [*package.split(".")[: package.count(".") + 2 - level], name]))


def _of_rank(rules: Rules, name: str, variables: Mapping[str, Any], fromlist: tuple[str, ...]) -> Any:
    copies: Copies | None = variables.get(_COPY)
    if copies is not None:
        return copies.imported(name, fromlist, from_copy=True)
    process = current()
    if process is None or name.partition(".")[0] not in _PACKAGES or not _is_program(rules, variables):
        return None
    return process.copies.imported(name, fromlist, from_copy=False)


def _is_program(rules: Rules, variables: Mapping[str, Any]) -> bool:
    """Reports whether these are the variables of a module of the program; what was executed from a string is, too."""
    file = variables.get("__file__")
    return file is None or rules.is_own_file(str(variables.get("__name__")), file)
