"""Loops of programs that a thread, a rank or a signal is to end, such as `while not done: pass`.

A processor's threads run beside each other; tasks take turns, where they wait. So the code of programs says in loops
that only look that it does, and who looks again and again lets others run. In other loops it counts the rounds, and
lets others run after a great many in which it has not waited.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import itertools
from collections.abc import Callable

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.launch.patches import current, replace
from torchemu.runtime import waiting
from torchemu.runtime.waiting import MICROSECOND, Looks

_SPINS = "__torchemu_spins__"
_GOES_ON, _AFTER_MANY = "__torchemu_goes_on__", "__torchemu_after_many_rounds__"
_ROUNDS = 1 << 14
_LONGEST = 10 * MICROSECOND
_FUNCTIONS = ("all", "any", "bool", "float", "getattr", "hasattr", "int", "len", "max", "min", "sum")
_METHODS = ("all", "any", "get", "item", "monotonic", "perf_counter", "sum", "time")


class Spinning(ast.NodeTransformer):
    """Lets loops that only look say so each time, and others that they go round.

    Attributes:
        found: there are some.
    """

    def __init__(self) -> None:
        self.found = False

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        self.found = True
        if _looks(node.test) and all(map(_does_nothing, node.body)) and _may_end(node):
            told = _told(f"{_SPINS}({_is_memory(node)})", node)
        else:
            told = _told(f"{_GOES_ON}() or {_AFTER_MANY}()", node)
        node.body.insert(0, told)
        return node


def _told(text: str, loop: ast.While) -> ast.stmt:
    """Returns a statement that is where a loop is."""
    (told,) = ast.parse(text).body
    for part in ast.walk(told):
        ast.copy_location(part, loop)
    return told


def _is_memory(node: ast.While) -> bool:
    """Returns whether what the loop looks at may be memory that processes share, such as m[0] or counter.value."""
    called = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
    return any(
        isinstance(part, ast.Subscript)
        or (isinstance(part, ast.Attribute) and (part.attr == "value" or part in called))
        for part in ast.walk(node)
    )


def _may_end(node: ast.While) -> bool:
    """Returns whether the loop ends by what it sees, and not only by a signal."""
    return not isinstance(node.test, ast.Constant) or any(isinstance(part, ast.If) for part in node.body)


def _does_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.If):
        return _looks(node.test) and all(map(_does_nothing, [*node.body, *node.orelse]))
    if isinstance(node, ast.Return):
        return node.value is None or _looks(node.value)
    return isinstance(node, ast.Pass | ast.Continue | ast.Break) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _looks(node: ast.expr) -> bool:
    """Returns whether an expression calls nothing but what looks at values or clocks."""
    for part in ast.walk(node):
        if isinstance(part, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom):
            return False
        if isinstance(part, ast.Call):
            function = part.func
            if not (
                (isinstance(function, ast.Name) and function.id in _FUNCTIONS + _METHODS)
                or (isinstance(function, ast.Attribute) and function.attr in _METHODS)
            ):
                return False
    return True


def install(stack: contextlib.ExitStack) -> None:
    """Lets ranks that only look, or go round and round, let others run, until the stack is closed."""
    for name, does in ((_SPINS, _spins), (_GOES_ON, _rounds()), (_AFTER_MANY, _after_many_rounds)):
        vars(builtins).setdefault(name, None)
        stack.callback(vars(builtins).pop, name)
        replace(stack, builtins, name, does)


def _spins(is_memory: bool) -> None:
    """Lets others run where the running rank has looked often, with nothing between that takes its time.

    Args:
        is_memory: processes of the system may write what it looks at.
    """
    process = current()
    if process is None:
        return
    context = runtime.current()
    if not context.is_host:
        return
    again = process.looks_again("while", "", go.HostTime(context.world.handle, context.rank))
    if not again:
        return
    took = min(MICROSECOND * again, _LONGEST)
    if is_memory or process.handlers:
        waiting.sleep(took)  # what ends it may come from outside
    else:
        waiting.look(took, "a loop that only looks")
    process.looked_at = go.HostTime(context.world.handle, context.rank)


def _rounds() -> Callable[[], bool]:
    """Returns what is true for a great many calls, of all ranks together. A call is to cost next to nothing."""
    return functools.partial(next, itertools.islice(itertools.repeat(True), _ROUNDS), False)


def _after_many_rounds() -> None:
    """Lets others run where the running rank's time stands still since it did so last."""
    setattr(builtins, _GOES_ON, _rounds())
    process = current()
    if process is None:
        return
    process.handle_signals()
    context = runtime.current()
    if not context.is_host:
        return
    now = go.HostTime(context.world.handle, context.rank)
    if now != process.went_round_at:
        process.rounds = Looks()
    else:
        waiting.sleep(process.rounds.longer())
    process.went_round_at = go.HostTime(context.world.handle, context.rank)
