"""Installed packages that keep a rank's state in variables of their modules, or of their classes.

Such a package, Megatron say, is loaded once. Functions of its modules that set variables of the module say so in their
code. Right after a module was executed, those variables are noted, its dicts, lists and sets, also those that are
default values of functions, and what functions set on its classes. What they hold is exchanged when another rank goes
on.
"""

from __future__ import annotations

import copy
import dis
import importlib.machinery
import inspect
import operator
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from torchemu import runtime
from torchemu.frontends.torch.session import Session

PACKAGES = ("megatron", "megatron_core", "transformer_engine", "deepspeed", "accelerate")
"""Packages whose modules' variables are exchanged."""

SETTING = (
    "ignite", "fairscale", "detectron2", "mmengine", "torchtitan", "torchtune", "composer", "colossalai", "yunchang",
)  # fmt: skip
"""Packages of which only those are exchanged that functions set: what else is in their modules is filled by imports."""

ATTRIBUTES = {
    "omegaconf.omegaconf": (("BaseContainer", "_resolvers"),),
    "torch.testing._internal.distributed.distributed_test": (("Barrier", "barrier_id"),),
    "torch.distributed.fsdp._debug_utils": (("SimpleProfiler", "profiling"), ("SimpleProfiler", "results")),
    "torch.distributed.tensor._api": (("DTensor._op_dispatcher", "_custom_op_handlers"),),
    "torch.distributed.tensor._random": (("", "_rng_tracker"),),
    "torch.distributed.tensor.experimental._context_parallel._attention": (("", "_replaced_functions"),),
    "torch.nn.functional": (("", "scaled_dot_product_attention"),),
}
"""Attributes of classes that are exchanged, of objects that classes have, and of modules themselves, by module."""

PATCHES = {
    "deepspeed.runtime.zero.partition_parameters": ("shutdown_init_context", "restore_init_context"),
}
"""The functions of modules that take a rank's patches of PyTorch's classes away, and put them in place again."""

_MISSING = object()
_INSTRUCTIONS = ("STORE_GLOBAL", "DELETE_GLOBAL")
_CONTAINERS = (dict, list, set)
_PLAIN = (int, float, bool, str, type(None))
_FUNCTIONS = (types.FunctionType, staticmethod, classmethod)


class Variable:
    """A variable that each rank has for itself.

    Args:
        owner: the module, a class, a function or another object.
        name: its name.
    """

    __slots__ = ("_first", "_get", "name", "owner")

    def __init__(self, owner: Any, name: str) -> None:
        self.owner, self.name, self._get = owner, name, vars(owner).get
        self._first = _copied(self.value())

    def value(self) -> Any:
        """Returns the present value."""
        return self._get(self.name, _MISSING)

    def first(self) -> Any:
        """Returns the value that a rank begins with."""
        return _copied(self._first)

    def set(self, value: Any) -> None:
        """Makes it hold a value."""
        if value is not _MISSING:
            setattr(self.owner, self.name, value)
        elif self.value() is not _MISSING:
            delattr(self.owner, self.name)


class Defaults:
    """Default values of a function's parameters that each rank has for itself: a list, say, in which it counts.

    Args:
        function: the function.
    """

    __slots__ = ("_first", "_function")

    def __init__(self, function: types.FunctionType) -> None:
        self._function = function
        self._first = tuple(map(_copied, self.value()))

    def value(self) -> Any:
        """Returns the present values."""
        return self._function.__defaults__

    def first(self) -> Any:
        """Returns the values that a rank begins with."""
        return tuple(map(_copied, self._first))

    def set(self, value: Any) -> None:
        """Makes the parameters have values."""
        self._function.__defaults__ = value


def _nothing() -> None:
    """Stands for a function of a module that is being loaded."""


def _package(module: str) -> str:
    return module.partition(".")[0]


def _copied(value: Any) -> Any:
    return copy.copy(value) if type(value) in _CONTAINERS else value


class Variables:
    """The variables of one run. They are exchanged when ranks change."""

    def __init__(self) -> None:
        self._all: list[Variable | Defaults] = []
        self._kept: dict[runtime.Context | None, list[Any]] = {}

    def note(self, module: types.ModuleType, code: types.CodeType | None) -> None:
        """Notes those of a module that has just been executed."""
        names = _set_by(code) if code is not None else set()
        if code is not None:
            self._all += [Variable(owner, name) for owner, name in _remembered(module, code)]
        if _package(module.__name__) in SETTING:
            self._all += [Variable(module, name) for name in sorted(names)]
            return
        held = {n for n, v in vars(module).items() if type(v) in _CONTAINERS and not n.startswith("__")}
        self._all += [Variable(module, name) for name in sorted(names | held)]
        for kind in _classes(module):
            counters = _set_on(kind, code) if code is not None else set()
            self._all += [Variable(kind, name) for name in sorted({*_registries(kind), *counters})]
        self._all += [Defaults(function) for owner in (module, *_classes(module)) for function in _counting(owner)]

    def note_attributes(self, module: types.ModuleType) -> None:
        """Notes attributes of its classes."""
        for kind, name in ATTRIBUTES.get(module.__name__, ()):
            self._all.append(Variable(operator.attrgetter(kind)(module) if kind else module, name))

    def note_names(self, names: Mapping[types.ModuleType, Sequence[str]]) -> None:
        """Notes variables of modules."""
        self._all += [Variable(module, name) for module, own in names.items() for name in own]

    def exchange(self, before: runtime.Context | None, after: runtime.Context | None) -> None:
        """Puts a rank's values in place of another one's."""
        if not self._all:
            return
        patching = [(sys.modules[name], functions) for name, functions in PATCHES.items() if name in sys.modules]
        for module, (take_away, _) in patching:
            getattr(module, take_away, _nothing)()
        self._exchange(before, after)
        for module, (_, put_back) in patching:
            getattr(module, put_back, _nothing)()

    def _exchange(self, before: runtime.Context | None, after: runtime.Context | None) -> None:
        values = self._kept[before] = [variable.value() for variable in self._all]
        kept = self._kept.get(after, [])
        kept += [variable.first() for variable in self._all[len(kept) :]]
        for variable, value, own in zip(self._all, values, kept, strict=True):
            if own is not value:
                variable.set(own)


def _classes(module: types.ModuleType) -> list[type]:
    """Returns the classes that a module defines."""
    found = [value for value in vars(module).values() if isinstance(value, type)]
    return [kind for kind in found if kind.__module__ == module.__name__]


def _registries(kind: type) -> list[str]:
    """Attributes of a class that are empty dicts at first: instances keep there what they have in common."""
    return [name for name, value in vars(kind).items() if type(value) is dict and not value and name[:2] != "__"]


def _set_on(kind: type, code: types.CodeType) -> set[str]:
    """Attributes of a class that functions of its module, of which it is given the code, may set: counters, say."""
    return {
        instruction.argval
        for inner in _functions(code)
        if kind.__name__ in inner.co_names or inner.co_varnames[:1] == ("cls",)
        for instruction in dis.get_instructions(inner)
        if instruction.opname == "STORE_ATTR" and type(vars(kind).get(instruction.argval)) in _PLAIN
    }


def _counting(owner: Any) -> list[types.FunctionType]:
    """Returns the functions that a module or class defines with a dict, list or set as a default value."""
    module = owner.__name__ if isinstance(owner, types.ModuleType) else owner.__module__
    functions: list[Any] = [value for value in vars(owner).values() if isinstance(value, _FUNCTIONS)]
    found = dict.fromkeys(inspect.unwrap(getattr(function, "__func__", function)) for function in functions)
    return [
        function
        for function in found
        if isinstance(function, types.FunctionType)
        and function.__module__ == module
        and any(type(value) in _CONTAINERS for value in function.__defaults__ or ())
    ]


def _set_by(code: types.CodeType) -> set[str]:
    """Variables of the module that functions set, of the code of a module."""
    return {
        instruction.argval
        for inner in _functions(code)
        for instruction in dis.get_instructions(inner)
        if instruction.opname in _INSTRUCTIONS
    }


def _remembered(module: types.ModuleType, code: types.CodeType) -> list[tuple[Any, str]]:
    """Returns the attributes that functions of a module, of which it is given the code, set on functions and objects of
    its package: a cache of groups, say."""
    names = {pair for inner in _functions(code) for pair in _stored(list(dis.get_instructions(inner)))}
    found = [(vars(module).get(owner), attribute) for owner, attribute in sorted(names)]
    return [(owner, attribute) for owner, attribute in found if _remembers(owner, _package(module.__name__))]


def _stored(code: list[dis.Instruction]) -> Iterator[tuple[str, str]]:
    """Yields what a function sets as an attribute of a global name, by ``=`` or, say, ``+=``: the names of both."""
    for owner, second, third in zip(code, code[1:], code[2:], strict=False):
        if owner.opname == "LOAD_GLOBAL" and second.opname == "STORE_ATTR":
            yield owner.argval, second.argval
        elif owner.opname == "LOAD_GLOBAL" and (second.opname, third.opname) == ("COPY", "LOAD_ATTR"):
            yield owner.argval, third.argval


def _remembers(owner: Any, package: str) -> bool:
    """Returns whether what a global name stands for is a function, or an object of a class of the package."""
    if isinstance(owner, types.FunctionType):
        return True
    is_object = not isinstance(owner, type | types.ModuleType) and hasattr(owner, "__dict__")
    return is_object and _package(type(owner).__module__) == package


def _functions(code: types.CodeType) -> Iterator[types.CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield inner
            yield from _functions(inner)


class _Noting(importlib.machinery.SourceFileLoader):
    """Loads a module, notes its variables, and calls what waits for it."""

    variables: Variables
    waiting: Callable[[Any], object] | None

    def exec_module(self, module: types.ModuleType) -> None:
        super().exec_module(module)
        if module.__name__ in ATTRIBUTES:
            self.variables.note_attributes(module)
        elif _package(module.__name__) in (*PACKAGES, *SETTING):
            self.variables.note(module, self.get_code(module.__name__))
        if self.waiting is not None:
            self.waiting(module)


class _Finder:
    """Finds modules of which variables are exchanged, or for which the run waits.

    Args:
        variables: those of the run.
        waiting: what is called with modules, by their names.
    """

    def __init__(self, variables: Variables, waiting: dict[str, Callable[[Any], object]]) -> None:
        self._variables, self._waiting = variables, waiting

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns the spec of a module; None where it is of no such package."""
        if _package(name) not in (*PACKAGES, *SETTING) and name not in ATTRIBUTES and name not in self._waiting:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            loader = spec.loader = _Noting(spec.loader.name, spec.loader.path)
            loader.variables, loader.waiting = self._variables, self._waiting.get(name)
        return spec


def install(run: Session) -> None:
    """Gives ranks variables of their own, until the run ends."""
    variables = Variables()
    for name in ATTRIBUTES:
        if name in sys.modules:
            variables.note_attributes(sys.modules[name])
    for name, act in run.on_load.items():
        if name in sys.modules:
            act(sys.modules[name])
    finder = _Finder(variables, run.on_load)
    sys.meta_path.insert(0, finder)
    run.stack.callback(sys.meta_path.remove, finder)
    run.stack.callback(_forget)
    run.on_switch.append(variables.exchange)


def _forget() -> None:
    """Unloads the packages: the next run notes their variables as it loads them."""
    for name in [name for name in sys.modules if _package(name) in (*PACKAGES, *SETTING)]:
        del sys.modules[name]
