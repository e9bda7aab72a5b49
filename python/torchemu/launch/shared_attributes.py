"""Attributes that functions of installed packages set on modules and classes of others, such as torch's.

An installed package is loaded once, and notes in its own variables what it has done. So what it sets counts for all
ranks. A rank that sets another value than the one that another rank has set there gets an error. A context manager sets
for its caller, and takes back: what is set there is the rank's own, also where it is a module of a name. So is what is
set on builtins: print, by which the first rank alone is to be heard.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import re
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from torchemu import runtime
from torchemu.launch import compiling, own_attributes
from torchemu.launch.modules import variables
from torchemu.launch.patches import current, replace

if TYPE_CHECKING:
    from torchemu.launch.process import Process

_MODULES = "__torchemu_own_module__"
_BEGINS, _HAS_SET, _SETATTR = "__torchemu_begins_to_set__", "__torchemu_has_set__", "__torchemu_shared_setattr__"
_IMPORTS = re.compile(rb"\bimport\s+(\([^)]*\)|[^\n]*)")
_STORES = re.compile(rb"\n[ \t]+(\w+)(?:\.\w+)+ *=(?!=)")
_CALLS = re.compile(rb"setattr\((?!self\b)")
_WORD = re.compile(rb"\w+")
_PLAIN = (bool, int, float, str, bytes, type(None))
_MISSING = object()


def compiled(source: bytes, file: str) -> types.CodeType | None:
    """Returns the code of a package's file whose functions tell what they set; None where they set nothing so.

    Args:
        source: what is in the file.
        file: its path.
    """
    stored = {*_STORES.findall(source)} - {b"self", b"cls"}
    calls = _CALLS.search(source) is not None or b"sys.modules[" in source
    if not stored and not calls:
        return None
    imported = {name for names in _IMPORTS.findall(source) for name in _WORD.findall(names)}
    roots = {name.decode() for name in imported & stored}
    if not roots and not calls:
        return None
    telling = _Telling(roots)
    tree = telling.visit(ast.parse(source, file))
    return compiling.code_of(tree, file) if telling.found else None


class _Telling(ast.NodeTransformer):
    """Lets functions tell what they set. What a module does as it is loaded is done for all ranks.

    Args:
        roots: the names of what is imported and has attributes set.

    Attributes:
        found: there is something to tell.
    """

    def __init__(self, roots: set[str]) -> None:
        self._roots, self._depth, self.found = roots, 0, False
        self._builtins: set[str] = set()  # names of the module
        self._arguments: set[str] | None = None  # of the context manager that it is in

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        outer = self._arguments
        self._arguments = {argument.arg for argument in node.args.args} if _is_context(node) else None
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        self._arguments = outer
        return node

    def visit_Import(self, node: ast.Import) -> ast.AST:
        self._builtins.update(alias.asname or alias.name for alias in node.names if alias.name == "builtins")
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        if self._depth and any(_root(target) in self._builtins for target in node.targets):
            return self._own(node, set())
        if self._arguments is not None:
            return [*self._named_modules(node.targets), *_listed(self._own(node, self._arguments))]
        paths = [target for target in node.targets if isinstance(target, ast.Attribute) and self._is_others(target)]
        if not paths or not self._depth:
            return node
        self.found = True
        begins, ends = [[own_attributes.telling(path, call) for path in paths] for call in (_BEGINS, _HAS_SET)]
        return [*begins, node, *ends]

    def visit_Delete(self, node: ast.Delete) -> Any:
        return node if self._arguments is None else [*self._named_modules(node.targets), node]

    def _named_modules(self, targets: list[ast.expr]) -> list[ast.stmt]:
        """Returns what says that a context manager puts modules into sys.modules, or takes them out."""
        keys = [each.slice for each in targets if isinstance(each, ast.Subscript) and _is_modules(each.value)]
        self.found = self.found or bool(keys)
        calls = [ast.Expr(ast.Call(ast.Name(_MODULES, ast.Load()), [key], [])) for key in keys]
        return [ast.fix_missing_locations(ast.copy_location(call, key)) for call, key in zip(calls, keys, strict=True)]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not self._depth or not isinstance(node.func, ast.Name):
            return node
        own = {"setattr": _SETATTR} if self._arguments is None else own_attributes.SETATTR
        if node.func.id in own:
            node.func.id, self.found = own[node.func.id], True
        return node

    def _own(self, node: ast.Assign, arguments: set[str]) -> Any:
        """Lets an assignment of a context manager say that what it sets is the rank's own."""
        paths = [target for target in node.targets if isinstance(target, ast.Attribute)]
        told = [own_attributes.telling(path) for path in paths if _root(path) not in {None, *arguments}]
        self.found = self.found or bool(told)
        return [*told, node]

    def _is_others(self, target: ast.expr) -> bool:
        return _root(target) in self._roots


def _listed(nodes: Any) -> list[ast.stmt]:
    return nodes if isinstance(nodes, list) else [nodes]


def _is_modules(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "modules" and _root(node) == "sys"


def _root(target: ast.expr) -> str | None:
    """Returns the first of names with dots between them; None where it is something else."""
    while isinstance(target, ast.Attribute):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def _is_context(node: ast.FunctionDef) -> bool:
    """Returns whether a function is a context manager that keeps nothing in variables of the module: there it may note
    that all is done, and ranks share the note."""
    if node.name in ("__enter__", "__exit__"):
        return True
    named = any(ast.unparse(decorator).rpartition(".")[2] == "contextmanager" for decorator in node.decorator_list)
    return named and not any(isinstance(part, ast.Global) for part in ast.walk(node))


class _Write(NamedTuple):
    """A value that a rank has set, in the place of another one."""

    process: Any
    rank: int
    value: Any
    before: Any


class SharedAttributes:
    """The attributes that functions of packages have set in one run.

    Args:
        exchanges: what is called when another rank goes on, with the processes.
    """

    def __init__(self, exchanges: list[Callable[[Process, Process], None]]) -> None:
        self._exchanges = exchanges
        self._writes: dict[tuple[Any, str], _Write] = {}
        self._before: Any = None
        self._modules: dict[str, Any] = {}  # by name: what ranks begin with
        self._kept: dict[int, dict[str, Any]] = {}  # by the process's id: what it has, while others run

    def install(self, stack: contextlib.ExitStack) -> None:
        """Lets packages tell what they set, until the stack is closed."""
        own: dict[str, Callable[..., None]] = {_BEGINS: self._begins, _HAS_SET: self._has_set, _SETATTR: self._setattr}
        own[_MODULES] = self._sets_module
        for name, function in own.items():
            # Packages stay loaded after the run, and their functions call these names.
            vars(builtins).setdefault(name, setattr if name == _SETATTR else _nothing)
            replace(stack, builtins, name, function)

    def _sets_module(self, name: str) -> None:
        """Notes that the running rank is about to put a module into sys.modules, or to take it out, for a while."""
        if current() is not None and name not in self._modules:
            if not self._modules:
                self._exchanges.append(self._exchange)
            self._modules[name] = sys.modules.get(name, _MISSING)

    def _exchange(self, before: Process, after: Process) -> None:
        """Puts a process's modules of these names in the place of another one's."""
        self._kept[id(before)] = {name: sys.modules.get(name, _MISSING) for name in self._modules}
        for name, module in {**self._modules, **self._kept.get(id(after), {})}.items():
            if module is _MISSING:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module

    def _begins(self, owner: Any, name: str) -> None:
        """Notes what is there before a statement. One that extends a list finds it as a first rank has found it."""
        last = self._writes.get((owner, name)) if isinstance(owner, type | types.ModuleType) else None
        if last is not None and last.process is not current() and isinstance(last.before, (list, tuple)):
            setattr(owner, name, last.before)
        self._before = variables(owner).get(name, _MISSING) if isinstance(owner, type | types.ModuleType) else None

    def _setattr(self, owner: Any, name: str, value: Any, /) -> None:
        self._begins(owner, name)
        setattr(owner, name, value)
        self._has_set(owner, name)

    def _has_set(self, owner: Any, name: str) -> None:
        """Compares what has been set with what another rank has set there.

        Raises:
            RuntimeError: they differ.
        """
        process = current()
        if (
            process is None
            or not isinstance(owner, type | types.ModuleType)
            or not own_attributes.is_shared(owner, name)
        ):
            return
        setter, value = _setter(), variables(owner).get(name, _MISSING)
        if setter == _package(owner):
            return
        last = self._writes.get((owner, name))
        first = self._before if last is None else last.before
        if value is first or (first is _MISSING and value is _inherited(owner, name)):  # put back as getattr had it
            self._writes.pop((owner, name), None)
        elif last is None or last.process is process or _is_same(last.value, value):
            self._writes[owner, name] = _Write(process, runtime.current().rank, value, first)
        elif _wraps_again(last, _inherited(owner, name) if first is _MISSING else first, value):
            setattr(owner, name, last.value)
        else:
            raise RuntimeError(
                f"{setter} sets {_named(owner)}.{name}, which it has set to something else for rank {last.rank}: "
                f"installed packages set attributes for all ranks. --isolate {setter} gives each rank its own"
            )


def _wraps_again(last: _Write, first: Any, value: Any) -> bool:
    """Reports whether a value does around another rank's what that does around what was there first: each rank wraps
    what it finds, where a process would find what was there first."""
    return _is_same(last.value, value, frozenset({(id(first), id(last.value))}))


def _inherited(owner: Any, name: str) -> Any:
    """Returns what an attribute is that a module or class has not got itself; None where it is nothing."""
    kinds = owner.__mro__ if isinstance(owner, type) else ()
    return next((vars(kind)[name] for kind in kinds[1:] if name in vars(kind)), None)


def _nothing(owner: Any, name: str = "") -> None:
    pass


def _setter() -> str:
    """Returns the package of the function that sets an attribute."""
    frame: Any = sys._getframe(1)
    while frame.f_code.co_filename.startswith(runtime.PACKAGE):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _package(owner: Any) -> str:
    return str(owner.__name__ if isinstance(owner, types.ModuleType) else owner.__module__).partition(".")[0]


def _named(owner: Any) -> str:
    return owner.__name__ if isinstance(owner, types.ModuleType) else f"{owner.__module__}.{owner.__qualname__}"


def _is_same(a: Any, b: Any, under_way: frozenset[tuple[int, int]] = frozenset()) -> bool:
    """Reports whether two values do the same: functions that were made twice of the same code, of the same values, and
    lists of the same.

    Args:
        under_way: the pairs that are being compared, which functions that know themselves lead back to.
    """
    if a is b or (id(a), id(b)) in under_way:
        return True
    if isinstance(a, types.FunctionType) and isinstance(b, types.FunctionType):
        own, other = (a.__code__, *_held(a)), (b.__code__, *_held(b))
    elif isinstance(a, (tuple, list)) and type(a) is type(b):
        own, other = tuple(a), tuple(b)
    else:
        return isinstance(a, _PLAIN) and type(a) is type(b) and bool(a == b)
    under_way |= {(id(a), id(b))}
    return len(own) == len(other) and all(_is_same(x, y, under_way) for x, y in zip(own, other, strict=True))


def _held(function: types.FunctionType) -> list[Any]:
    """Lists the values that a function has of its own."""
    cells = [_content(cell) for cell in function.__closure__ or ()]
    return [function.__defaults__, tuple((function.__kwdefaults__ or {}).items()), *cells]


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it has none yet
        return _MISSING
