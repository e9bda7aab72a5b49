"""Kernels as Python that runs: the syntax tree of a function, with the meaning that Triton gives it."""

from __future__ import annotations

import ast
import copy
import inspect
import linecache
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

from torchemu.frontends.triton import _control
from torchemu.frontends.triton._packed import Uses

_CONTROL = "__triton_control__"
_BUILTINS = {"range": "Range"}
_MEETINGS = {"__syncthreads", "debug_barrier"}


def rewritten(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that runs as a kernel does.

    Raises:
        OSError: its source is not to be had.
        SyntaxError: it has what kernels do not have.
    """
    code = function.__code__
    lines, first = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise SyntaxError(f"{function.__qualname__} is no function that begins with def")
    _strip(definition)
    body = _Body(code.co_filename, first, definition)
    entered = ast.Expr(value=_control_call("enter"))
    definition.body = [entered, *body.statements(definition.body)]
    for node in ast.walk(entered):
        if isinstance(node, ast.stmt | ast.expr):
            _place(node, definition)
    free = [_CONTROL, *code.co_freevars]
    maker = ast.FunctionDef(
        name="__maker__",
        args=ast.arguments(
            posonlyargs=[], args=[ast.arg(arg=n) for n in free], kwonlyargs=[], kw_defaults=[], defaults=[]
        ),
        body=[definition, ast.Return(value=_name(definition.name))],
        decorator_list=[],
    )
    module = ast.Module(body=[maker], type_ignores=[])
    ast.fix_missing_locations(module)
    ast.increment_lineno(module, first - 1)
    found: dict[str, Any] = {}
    linecache.checkcache(code.co_filename)
    exec(compile(module, code.co_filename, "exec"), function.__globals__, found)
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    made: Callable[..., Any] = found["__maker__"](_control, *cells)
    return made


def _strip(definition: ast.FunctionDef) -> None:
    """Takes away what is not executed in a kernel: decorators, types, and defaults, which the caller has bound."""
    definition.decorator_list, definition.returns = [], None
    a = definition.args
    for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs, *((a.vararg,) if a.vararg else ())):
        arg.annotation = None
    none = ast.Constant(value=None)
    a.defaults = [none for _ in a.defaults]
    a.kw_defaults = [None if d is None else none for d in a.kw_defaults]


def _name(name: str, store: bool = False) -> ast.Name:
    return ast.Name(id=name, ctx=ast.Store() if store else ast.Load())


def _control_call(function: str, *args: ast.expr) -> ast.Call:
    return ast.Call(
        func=ast.Attribute(value=_name(_CONTROL), attr=function, ctx=ast.Load()), args=list(args), keywords=[]
    )


def _method(of: str, name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(func=ast.Attribute(value=_name(of), attr=name, ctx=ast.Load()), args=list(args), keywords=[])


def _locals() -> ast.Call:
    return ast.Call(func=_name("locals"), args=[], keywords=[])


def _attribute(of: str, name: str) -> ast.Attribute:
    return ast.Attribute(value=_name(of), attr=name, ctx=ast.Load())


def _place(node: ast.stmt | ast.expr, statement: ast.stmt) -> None:
    """Puts a node at a statement's beginning: a call is reported at the end of what it calls."""
    node.lineno = node.end_lineno = statement.lineno
    node.col_offset, node.end_col_offset = statement.col_offset, statement.col_offset + 1


def _names(names: Iterable[str]) -> ast.Tuple:
    return ast.Tuple(elts=[ast.Constant(value=n) for n in names], ctx=ast.Load())


def _assigned(statements: Iterable[ast.stmt]) -> list[str]:
    """The names that statements assign, in their order."""
    found: dict[str, None] = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not node.id.startswith("__tt"):
                found[node.id] = None
    return list(found)


def _only_looks(loop: ast.While) -> bool:
    """Reports whether a loop has its looks in its body, which only assigns what the condition is about."""
    if any(isinstance(node, ast.Call) for node in ast.walk(loop.test)):
        return False
    used = {node.id for node in ast.walk(loop.test) if isinstance(node, ast.Name)}
    return all(isinstance(s, ast.Assign) for s in loop.body) and not used.isdisjoint(_assigned(loop.body))


def _read(node: ast.AST) -> set[str]:
    """The names that are read, but for those of conditions of loops which only look."""
    found = {node.id} if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else set()
    parts = node.body if isinstance(node, ast.While) and _only_looks(node) else ast.iter_child_nodes(node)
    return found.union(*map(_read, parts))


def _is_followed(branch: ast.If, following: Iterable[ast.stmt]) -> bool:
    """Reports whether an if of other threads follows an if before all threads of the block meet."""
    for statement in following:
        names = {getattr(n, "attr", getattr(n, "id", "")) for n in ast.walk(statement)}
        if not names.isdisjoint(_MEETINGS):
            return False
        if isinstance(statement, ast.If) and ast.dump(statement.test) != ast.dump(branch.test):
            return True
    return False


class _Body(ast.NodeTransformer):
    """Rewrites the statements of a kernel.

    Args:
        file, first: where it is, for errors.
        definition: the kernel.
    """

    def __init__(self, file: str, first: int, definition: ast.FunctionDef) -> None:
        self._file, self._first, self._count = file, first, 0
        self._read, self._uses = _read(definition), Uses(definition)
        self._followed: set[ast.If] = set()  # those of which threads that are not in them come to another one

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Returns statements, rewritten."""
        result: list[ast.stmt] = []
        body = [s for s in body if not isinstance(s, ast.Pass)]
        for i, statement in enumerate(body):
            if isinstance(statement, ast.If) and _is_followed(statement, body[i + 1 :]):
                self._followed.add(statement)
            made = self.visit(statement)
            if isinstance(statement, ast.While) and self._looks_ahead(statement, body[:i]):
                ahead = len(statement.body)
                made[1:1] = result[-ahead:]
                del result[-ahead:]
            for new in made if isinstance(made, list) else [made]:
                for node in ast.walk(new):
                    if not hasattr(node, "lineno") and isinstance(node, ast.stmt | ast.expr):
                        _place(node, statement)
                result.append(new)
        return result or [ast.Pass()]

    def _fresh(self) -> str:
        self._count += 1
        return f"__tt{self._count}"

    def _error(self, node: ast.AST, text: str) -> SyntaxError:
        line = self._first + getattr(node, "lineno", 1) - 1
        return SyntaxError(text, (self._file, line, 1, linecache.getline(self._file, line)))

    def _waits(self, loop: ast.While) -> bool:
        """Reports whether a loop has its looks in its body, and all that they decide on is that it ends."""
        if not _only_looks(loop):
            return False
        decisive = {node.id for node in ast.walk(loop.test) if isinstance(node, ast.Name)}
        return self._read.isdisjoint(decisive.intersection(_assigned(loop.body)))

    def _looks_ahead(self, loop: ast.While, before: list[ast.stmt]) -> bool:
        """Reports whether the statements before a loop are those of its body: a first look, which is one of it."""
        first = before[-len(loop.body) :]
        return _only_looks(loop) and list(map(ast.dump, first)) == list(map(ast.dump, loop.body))

    # -- statements

    def visit_If(self, node: ast.If) -> Any:
        """Makes both sides run where the condition differs between threads."""
        name = self._fresh()
        first, second = _assigned(node.body), _assigned(node.orelse)
        test = self.visit(node.test)
        body, other = self.statements(node.body), self.statements(node.orelse) if node.orelse else []
        later = [ast.Constant(value=node in self._followed), ast.Constant(value=bool(other))]
        made: list[ast.stmt] = [ast.Assign(targets=[_name(name, True)], value=_control_call("branch", test, *later))]
        made.append(ast.If(test=_attribute(name, "then"), body=self._side(name, "enter", body, first), orelse=[]))
        if other:
            side = self._side(name, "turn", other, second)
            made.append(ast.If(test=_attribute(name, "other"), body=side, orelse=[]))
        return made

    def _side(self, name: str, begin: str, body: list[ast.stmt], assigned: list[str]) -> list[ast.stmt]:
        start = ast.If(
            test=_attribute(name, "lanes"), body=[ast.Expr(value=_method(name, begin, _locals()))], orelse=[]
        )
        leave = _method(name, "leave", _locals(), _names(assigned))
        return [start, *body, self._rebound(name, leave, assigned)]

    @staticmethod
    def _rebound(name: str, value: ast.expr, assigned: list[str]) -> ast.If:
        targets = [_name(n, True) for n in assigned]
        statement: ast.stmt = ast.Expr(value=value)
        if len(targets) == 1:
            statement = ast.Assign(targets=[targets[0]], value=value)
        elif targets:
            statement = ast.Assign(targets=[ast.Tuple(elts=list(targets), ctx=ast.Store())], value=value)
        return ast.If(test=_attribute(name, "lanes"), body=[statement], orelse=[])

    def _iteration(self, name: str, body: list[ast.stmt], assigned: list[str]) -> list[ast.stmt]:
        start = ast.If(
            test=_attribute(name, "lanes"), body=[ast.Expr(value=_method(name, "begin", _locals()))], orelse=[]
        )
        return [start, *body, self._rebound(name, _method(name, "blend", _locals()), assigned)]

    def visit_While(self, node: ast.While) -> Any:
        """Makes it go on while a thread does, and park where it only looks."""
        if node.orelse:
            raise self._error(node, "kernels have no else of a while")
        name, assigned = self._fresh(), _assigned(node.body)
        text = ast.unparse(node.test)
        uses = _only_looks(node) and not self._waits(node)
        begin = _control_call("Loop", _names(assigned), ast.Constant(value=text), ast.Constant(value=uses))
        again = self._again(node)
        test = _method(name, "goes", self.visit(node.test), _name(again.name))
        body = self._iteration(name, self.statements(node.body), assigned)
        return [
            ast.Assign(targets=[_name(name, True)], value=begin),
            again,
            ast.While(test=test, body=body, orelse=[]),
            ast.Expr(value=_method(name, "end")),
        ]

    def _again(self, node: ast.While) -> ast.FunctionDef:
        """Makes a function that evaluates a loop's condition once more, after its looks where these are its body."""
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        looks = copy.deepcopy(node.body) if _only_looks(node) else []
        held = ast.Return(value=self.visit(copy.deepcopy(node.test)))
        return ast.FunctionDef(
            name=self._fresh(), args=nothing, body=[*map(self.visit, looks), held], decorator_list=[]
        )

    def visit_For(self, node: ast.For) -> Any:
        """Makes the counter a value, which may differ between threads."""
        if node.orelse:
            raise self._error(node, "kernels have no else of a for")
        name, assigned = self._fresh(), _assigned(node.body)
        begin = _control_call("Each", self.visit(node.iter), _names(assigned))
        body = self._iteration(name, self.statements(node.body), assigned)
        return [
            ast.Assign(targets=[_name(name, True)], value=begin),
            ast.For(target=node.target, iter=_name(name), body=body, orelse=[]),
        ]

    def visit_With(self, node: ast.With) -> Any:
        """Keeps it, with its statements rewritten."""
        items = [ast.withitem(self.visit(i.context_expr), i.optional_vars) for i in node.items]
        return ast.With(items=items, body=self.statements(node.body))

    def visit_Break(self, node: ast.Break) -> Any:
        """Refuses it."""
        raise self._error(node, "kernels have no break")

    def visit_Continue(self, node: ast.Continue) -> Any:
        """Refuses it."""
        raise self._error(node, "kernels have no continue")

    def visit_Assert(self, node: ast.Assert) -> Any:
        """Makes it one of the kernel's."""
        parts = [node.test] + ([node.msg] if node.msg is not None else [])
        return ast.Expr(value=_control_call("check", *[self.visit(p) for p in parts]))

    def visit_Expr(self, node: ast.Expr) -> Any:
        """Notes of an atomic operation that what it finds is not used."""
        value = self.visit(node.value)
        called = node.value.func if isinstance(node.value, ast.Call) else None
        name = getattr(called, "attr", getattr(called, "id", ""))
        if name.startswith("atomic_") and isinstance(value, ast.Call):
            value.args[:0] = [value.func]
            value.func = _attribute(_CONTROL, "dropped")
        return ast.Expr(value=value)

    def visit_Assign(self, node: ast.Assign) -> Any:
        """Makes numbers values, and says which words of a load have no flag beside them."""
        words, value = self._uses.words_of_data(node), self.visit(node.value)
        if words:
            numbers: list[ast.expr] = [ast.Constant(value=i) for i in words]
            value.args[:0] = [ast.Tuple(elts=numbers, ctx=ast.Load()), value.func]
            value.func = _attribute(_CONTROL, "as_data")
        return ast.Assign(targets=node.targets, value=_control_call("let", value))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """Makes it an assignment."""
        if not isinstance(node.target, ast.Name):
            return self.generic_visit(node)
        value = ast.BinOp(left=_name(node.target.id), op=node.op, right=self.visit(node.value))
        return ast.Assign(targets=[node.target], value=_control_call("let", value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """Keeps a constexpr as it is."""
        if node.value is None:
            return ast.Pass()
        value = self.visit(node.value)
        if "constexpr" not in ast.unparse(node.annotation):
            value = _control_call("let", value)
        return ast.Assign(targets=[node.target], value=value)

    # -- expressions

    def visit_Name(self, node: ast.Name) -> Any:
        """Gives builtins the meaning that they have in kernels."""
        if isinstance(node.ctx, ast.Load) and node.id in _BUILTINS:
            return _attribute(_CONTROL, _BUILTINS[node.id])
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """Makes and, or operations on values."""
        is_and = isinstance(node.op, ast.And)
        result = self.visit(node.values[-1])
        for value in reversed(node.values[:-1]):
            name = self._fresh()
            kept = ast.NamedExpr(target=_name(name, True), value=self.visit(value))
            test = _control_call("decides", kept, ast.Constant(value=not is_and))
            joined = _control_call("both" if is_and else "either", _name(name), result)
            result = ast.IfExp(test=test, body=_name(name), orelse=joined)
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """Makes not an operation on values."""
        self.generic_visit(node)
        return _control_call("no", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """Makes it choose by thread where the condition differs between threads."""
        name = self._fresh()
        test, a, b = self.visit(node.test), self.visit(node.body), self.visit(node.orelse)
        kept = ast.NamedExpr(target=_name(name, True), value=test)
        chosen = ast.IfExp(test=_name(name), body=a, orelse=b)
        both = _control_call("pick", _name(name), a, b)
        return ast.IfExp(test=_control_call("is_lanes", kept), body=both, orelse=chosen)
