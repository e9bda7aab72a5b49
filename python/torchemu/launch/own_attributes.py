"""Attributes of modules and classes that ranks share, where programs set them: each rank has its own.

Installed packages are loaded once, and so are torch, builtins and the rest of Python's library. A program that replaces
a function there means its own process. So the code of programs says before each such statement what it is about to set;
from then on the attribute is exchanged when another rank goes on.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import os
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchemu import runtime
from torchemu.launch.modules import is_program_file
from torchemu.launch.patches import current, replace

if TYPE_CHECKING:
    from torchemu.launch.process import Process

_SETS = "__torchemu_sets__"
SETATTR = {"setattr": "__torchemu_setattr__", "delattr": "__torchemu_delattr__"}
"""The names by which code that is told sets and deletes attributes."""
_MOCKS = "__torchemu_mocks__"
_EXCHANGED = ("sys", "warnings")
"""Modules of which ranks have their own state already; see interpreter.py, which exchanges os.environ, too."""

_MISSING = object()


class Telling(ast.NodeTransformer):
    """Lets statements that set an attribute say so first.

    Attributes:
        found: there are some.
    """

    def __init__(self) -> None:
        self.found = False

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        return self._told(node, node.targets)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        return self._told(node, [node.target])

    def visit_Delete(self, node: ast.Delete) -> Any:
        self.generic_visit(node)
        return self._told(node, node.targets)

    def visit_Import(self, node: ast.Import) -> Any:
        return self._mocking(node, any(alias.name == "unittest.mock" for alias in node.names))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        has = node.module == "unittest" and any(alias.name == "mock" for alias in node.names)
        return self._mocking(node, has or node.module == "unittest.mock")

    def _mocking(self, node: ast.stmt, has: bool) -> Any:
        """Lets an import of unittest.mock be followed by what makes its patches the rank's own."""
        if not has:
            return node
        self.found = True
        return [node, _located(ast.Expr(ast.Call(ast.Name(_MOCKS, ast.Load()), [], [])), node)]

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in SETATTR:
            node.func.id, self.found = SETATTR[node.func.id], True
        return node

    def _told(self, node: ast.stmt, targets: list[ast.expr]) -> Any:
        told = [telling(target) for target in _each(targets) if isinstance(target, ast.Attribute) and _is_path(target)]
        self.found = self.found or bool(told)
        return [*told, node] if told else node


def _each(targets: list[ast.expr]) -> list[ast.expr]:
    """Returns targets, also those in tuples and lists."""
    parts = [_each(list(t.elts)) if isinstance(t, ast.Tuple | ast.List) else [t] for t in targets]
    return [target for part in parts for target in part]


def _is_path(target: ast.expr) -> bool:
    """Returns whether it is names with dots between them, of which the first is not an object of a method."""
    while isinstance(target, ast.Attribute):
        target = target.value
    return isinstance(target, ast.Name) and target.id not in ("self", "cls")


def telling(target: ast.Attribute, name: str = _SETS) -> ast.stmt:
    """Returns the statement that tells a function of this name of the attribute that a target is."""
    owner = ast.parse(ast.unparse(target.value), mode="eval").body
    call = ast.Call(ast.Name(name, ast.Load()), [owner, ast.Constant(target.attr)], [])
    return _located(ast.Expr(call), target)


def _located(made: ast.stmt, at: ast.AST) -> ast.stmt:
    for node in ast.walk(made):
        ast.copy_location(node, at)
    return made


class Attributes:
    """The attributes that programs of one run have set.

    Args:
        exchanges: what is called when another rank goes on, with the processes.
    """

    def __init__(self, exchanges: list[Callable[[Process, Process], None]]) -> None:
        self._exchanges = exchanges
        self._owners: list[tuple[Any, str]] = []
        self._known: set[tuple[int, str]] = set()
        self._first: list[Any] = []  # what ranks begin with
        self._kept: dict[int, list[Any]] = {}  # by the process's id: what it has, while others run

    def sets(self, owner: Any, name: str) -> None:
        """Notes that the running rank is about to set an attribute, where that is another's, too."""
        if not isinstance(owner, type | types.ModuleType) or current() is None:
            return
        if isinstance(owner, types.ModuleType) and hasattr(type(owner), name):
            return  # a property, and what is behind it is no attribute
        if (id(owner), name) not in self._known and is_shared(owner, name):
            if not self._owners:
                self._exchanges.append(self.exchange)
            self._known.add((id(owner), name))
            self._owners.append((owner, name))
            self._first.append(vars(owner).get(name, _MISSING))

    def exchange(self, before: Process, after: Process) -> None:
        """Puts a process's values in the place of another one's."""
        self._kept[id(before)] = [vars(owner).get(name, _MISSING) for owner, name in self._owners]
        kept = self._kept.get(id(after), [])
        for (owner, name), value in zip(self._owners, [*kept, *self._first[len(kept) :]], strict=True):
            _set(owner, name, value)

    def install(self, stack: contextlib.ExitStack) -> None:
        """Lets programs say what they set, until the stack is closed; then all is as before."""

        def set_attribute(owner: Any, name: str, value: Any, /) -> None:
            self.sets(owner, name)
            setattr(owner, name, value)

        def delete_attribute(owner: Any, name: str, /) -> None:
            self.sets(owner, name)
            delattr(owner, name)

        own: dict[str, Callable[..., None]] = {"setattr": set_attribute, "delattr": delete_attribute}

        def mocks() -> None:
            module = sys.modules["unittest.mock"]
            vars(module).update({name: _but_for_mocks(name, own[name], module.NonCallableMock) for name in own})

        told = {_SETS: self.sets, _MOCKS: mocks, **{SETATTR[name]: function for name, function in own.items()}}
        for name, function in told.items():
            # Functions of programs outlive the run, in atexit and in packages, and call these names.
            vars(builtins).setdefault(name, _PLAIN[name])
            replace(stack, builtins, name, function)
        stack.callback(self._undo)
        stack.callback(_unmock)

    def _undo(self) -> None:
        for (owner, name), value in zip(self._owners, self._first, strict=True):
            _set(owner, name, value)


def _but_for_mocks(name: str, function: Callable[..., None], mock: type) -> Callable[..., None]:
    """Returns what sets attributes in unittest.mock, which makes a class for each mock: nobody else has that one."""
    real: Callable[..., None] = getattr(builtins, name)

    def call(owner: Any, *args: Any) -> None:
        is_mocks = isinstance(owner, type) and issubclass(owner, mock)
        (real if is_mocks else function)(owner, *args)

    return call


def _nothing(*_: Any) -> None:
    pass


_PLAIN = {_SETS: _nothing, _MOCKS: _nothing, **{SETATTR[name]: getattr(builtins, name) for name in SETATTR}}
"""The meaning of the names outside of runs."""


def _unmock() -> None:
    """Lets unittest.mock set attributes as it always does."""
    module = vars(sys.modules.get("unittest.mock", types))
    for name in SETATTR:
        module.pop(name, None)


def _set(owner: Any, name: str, value: Any) -> None:
    if value is not _MISSING:
        if vars(owner).get(name, _MISSING) is not value:
            setattr(owner, name, value)
    elif name in vars(owner):
        delattr(owner, name)


def is_shared(owner: Any, name: str) -> bool:
    """Returns whether an attribute of a module or a class is that of other ranks, too."""
    if owner is os and name == "environ":
        return False
    if isinstance(owner, types.ModuleType):
        module: types.ModuleType | None = owner
    else:
        module = sys.modules.get(owner.__module__)
    if module is None:
        return True  # classes of front ends are called as PyTorch's
    if module.__name__ in ("__main__", "__mp_main__", *_EXCHANGED):
        return False
    file = getattr(module, "__file__", None)
    return not (isinstance(file, str) and is_program_file(file)) and runtime.running() is not None
