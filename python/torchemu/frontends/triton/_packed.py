"""Words that a kernel loads together, of which some may be flags that say whether the others have come.

A flag is one that the kernel compares, or something that it makes of the flag. Words of which it compares nothing are
data like any other: whoever loads them has to have waited for them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_TOGETHER = {"load_v4_u32": ((0, 1), (2, 3)), "load_v2_u32": ((0, 1),), "load_v2_b64": ((0, 1),)}
"""The words of a load that a store writes at once."""

_STORES = ("st", "atomic_", "red_")
"""How the names of functions begin that do nothing with a value but to bring it to memory."""


class Uses:
    """The uses that a kernel makes of its names.

    Args:
        definition: the kernel, as it is written.
    """

    def __init__(self, definition: ast.FunctionDef) -> None:
        self._made: dict[str, set[str]] = {}
        self._decisive: set[str] = set()
        for node in ast.walk(definition):
            self._note(node)

    def words_of_data(self, node: ast.Assign) -> tuple[int, ...]:
        """Returns which words that an assignment loads are data without a flag; none where it is no such load."""
        call, target = node.value, node.targets[0]
        words = _TOGETHER.get(_called(call) or "") if isinstance(call, ast.Call) else None
        if words is None or len(node.targets) > 1:
            return ()
        if isinstance(target, ast.Name):
            names = {i: target.id for part in words for i in part}
        elif isinstance(target, ast.Tuple) and all(isinstance(e, ast.Name) for e in target.elts):
            names = {i: e.id for i, e in enumerate(target.elts) if isinstance(e, ast.Name)}
        else:
            return ()
        return tuple(i for part in words for i in part if not any(self._decides(names.get(j, "")) for j in part))

    def _decides(self, name: str) -> bool:
        """Reports whether the kernel may compare the value of a name, or what is made of it."""
        seen, open_ = {name}, [name]
        while open_:
            found = self._made.get(open_.pop(), set()) - seen
            seen |= found
            open_.extend(found)
        return not seen.isdisjoint(self._decisive)

    def _note(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=[target], value=value) if _are_names(target):
                for name in _names(value):
                    self._made.setdefault(name, set()).update(_names(target))
            case ast.AugAssign(target=ast.Name(id=made), value=value):
                for name in _names(value):
                    self._made.setdefault(name, set()).add(made)
            case ast.Expr(value=ast.Call() as call) if (_called(call) or "").startswith(_STORES):
                pass
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.NamedExpr() | ast.Expr() | ast.Return():
                self._decisive.update(_names(node))
            case ast.Compare() | ast.BoolOp() | ast.Assert() | ast.UnaryOp(op=ast.Not()):
                self._decisive.update(_names(node))
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.For(iter=test):
                self._decisive.update(_names(test))


def _called(call: ast.Call) -> str | None:
    """The last part of the name of the function that is called."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return None


def _are_names(target: ast.expr) -> bool:
    elements: Iterable[ast.expr] = target.elts if isinstance(target, ast.Tuple) else [target]
    return all(isinstance(e, ast.Name) for e in elements)


def _names(node: ast.AST) -> Iterator[str]:
    return (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
