"""Orders of sets of strings, for each rank its own, in the code of programs.

On a cluster each process has another seed of hashes, so a program that goes through a set of strings, and calls a
collective for each, fails there at times. Ranks here are one process: where the order is explored, the program's code
is compiled such that it goes through sets in an order that follows from the rank and a seed. What installed packages
go through is in the order of the process.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import hashlib
from typing import Any

from torchemu import runtime
from torchemu.launch.patches import replace

_THROUGH = "__torchemu_through__"
_TAKEN = "__torchemu_taken__"
_CALLS = ("list", "tuple", "enumerate", "iter", "map", "filter", "zip")
_METHODS = ("join", "fromkeys", "extend")


class Through(ast.NodeTransformer):
    """Wraps what code goes through."""

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.iter = _called(_THROUGH, node.iter)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        if not node.is_async:
            node.iter = _called(_THROUGH, node.iter)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        if any(isinstance(target, ast.Tuple | ast.List) for target in node.targets):
            node.value = _called(_THROUGH, node.value)
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = _called(_THROUGH, node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        is_call = isinstance(function, ast.Name) and function.id in _CALLS
        if is_call or (isinstance(function, ast.Attribute) and function.attr in _METHODS):
            node.args = [a if isinstance(a, ast.Starred) else _called(_THROUGH, a) for a in node.args]
        elif isinstance(function, ast.Attribute) and function.attr == "pop" and not (node.args or node.keywords):
            return _called(_TAKEN, function.value)
        return node


def _called(name: str, value: ast.expr) -> ast.Call:
    function = ast.copy_location(ast.Name(name, ast.Load()), value)
    return ast.copy_location(ast.Call(function, [value], []), value)


def install(stack: contextlib.ExitStack, seed: int) -> None:
    """Lets ranks go through sets in orders that follow from a seed, until the stack is closed."""

    def through(value: Any) -> Any:
        return _ordered(value, seed) if type(value) in (set, frozenset) and len(value) > 1 else value

    def taken(value: Any) -> Any:
        if type(value) is not set or len(value) < 2:
            return value.pop()
        first = next(iter(_ordered(value, seed)))
        value.remove(first)
        return first

    for name, function in ((_THROUGH, through), (_TAKEN, taken)):
        vars(builtins).setdefault(name, None)
        stack.callback(vars(builtins).pop, name)
        replace(stack, builtins, name, function)


def _ordered(values: Any, seed: int) -> Any:
    """Returns the elements in the running rank's order, where there are strings among them; else them."""
    context = runtime.running()
    if context is None or not any(_is_of_text(value) for value in values):
        return values
    start = f"{seed}/{context.rank}/".encode()
    return sorted(values, key=lambda value: hashlib.blake2b(start + repr(value).encode()).digest())


def _is_of_text(value: Any) -> bool:
    return isinstance(value, str | bytes) or (type(value) is tuple and any(map(_is_of_text, value)))
