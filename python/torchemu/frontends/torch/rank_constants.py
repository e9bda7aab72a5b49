"""Variables that modules of installed packages make, as they are loaded, of what torchrun tells a process: RANK, say.

Such a module is loaded once, by the first rank that imports it. What it has made of the environment by expressions that
do nothing else is made again for each other rank, and so is what further modules have imported of that.
"""

from __future__ import annotations

import ast
import importlib.util
import types
from collections.abc import Callable, Iterator
from typing import Any

TOLD = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"})
"""Variables of the environment by which torchrun tells a process who it is."""

_READING = frozenset({"os.getenv", "os.environ.get", "getenv", "environ.get", "int", "str", "bool"})
"""The functions that the expressions may call."""
_SIMPLE = (
    ast.Attribute, ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Constant, ast.IfExp, ast.List, ast.Name, ast.Set,
    ast.Subscript, ast.Tuple, ast.UnaryOp, ast.boolop, ast.cmpop, ast.expr_context, ast.operator, ast.unaryop,
)  # fmt: skip

_made: dict[str, dict[str, Constant]] = {}
"""By the names of modules: what they have made or imported, by name."""


class Constant:
    """A variable of a module that has another value for each rank.

    Args:
        owner: the module.
        name: its name.
        make: returns its value for the running rank, in a copy of the module's variables.
        before: those that the module has made before.
    """

    __slots__ = ("_before", "_make", "name", "owner")

    def __init__(
        self,
        owner: types.ModuleType,
        name: str,
        make: Callable[[dict[str, Any]], Any],
        before: list[Constant],
    ) -> None:
        self.owner, self.name, self._make, self._before = owner, name, make, before

    def value(self) -> Any:
        """Returns the present value."""
        return vars(self.owner).get(self.name)

    def first(self) -> Any:
        """Returns the value that the running rank begins with."""
        space = dict(vars(self.owner))
        for constant in (*self._before, self):
            try:
                space[constant.name] = constant._make(space)
            except (KeyError, ValueError, TypeError):
                space[constant.name] = constant.value()  # outside of ranks there may be no such variables
        return space[self.name]

    def set(self, value: Any) -> None:
        """Makes it hold a value."""
        vars(self.owner)[self.name] = value


def of(module: types.ModuleType, code: types.CodeType, source: Callable[[], bytes]) -> list[Constant]:
    """Returns those of a module that has just been executed.

    Args:
        module: the module.
        code: its code.
        source: returns its text.
    """
    found: dict[str, Constant] = {}
    _made.pop(module.__name__, None)
    others = set().union(*_made.values())
    if TOLD.isdisjoint(_strings(code.co_consts)) and others.isdisjoint(code.co_names):
        return []
    for statement in ast.parse(source()).body:
        for name, make in _making(module, statement, found):
            constant = Constant(module, name, make, list(found.values()))
            if constant.first() == constant.value():  # no later statement has made something else of it
                found[name] = constant
    if found:
        _made[module.__name__] = found
    return list(found.values())


def _strings(constants: tuple[Any, ...]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple):
            yield from _strings(constant)


def _making(
    module: types.ModuleType, statement: ast.stmt, found: dict[str, Constant]
) -> Iterator[tuple[str, Callable[[dict[str, Any]], Any]]]:
    """Yields the names that a statement of a module makes so, and what makes their values."""
    if isinstance(statement, ast.ImportFrom):
        of_others = _made.get(_source(module, statement), {})
        for alias in statement.names:
            if alias.name in of_others:
                yield alias.asname or alias.name, lambda _, name=alias.name: of_others[name].first()  # type: ignore[misc]
    elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if _is_told(statement.value, found) and all(isinstance(target, ast.Name) for target in targets):
            expression = compile(ast.Expression(statement.value), str(module.__file__), "eval")
            for target in targets:
                assert isinstance(target, ast.Name)
                yield target.id, lambda space: eval(expression, space)


def _source(module: types.ModuleType, statement: ast.ImportFrom) -> str:
    """Returns the name of the module from which a statement imports."""
    if not statement.level:
        return statement.module or ""
    package = module.__spec__.parent if module.__spec__ is not None else None
    return importlib.util.resolve_name("." * statement.level + (statement.module or ""), package or "")


def _is_told(expression: ast.expr, found: dict[str, Constant]) -> bool:
    """Returns whether an expression depends on what torchrun tells, and does nothing but read it."""
    nodes = list(ast.walk(expression))
    depends = any(
        (isinstance(node, ast.Constant) and node.value in TOLD) or (isinstance(node, ast.Name) and node.id in found)
        for node in nodes
    )
    calls = [ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)]
    return depends and all(isinstance(node, (*_SIMPLE, ast.keyword)) for node in nodes) and _READING.issuperset(calls)
