"""Installed packages that keep a rank's state in variables of their modules, or of their classes.

Such a package, Megatron say, is loaded once. Functions of its modules that set variables of the module say so in their
code. Right after a module was executed, those variables are noted, its dicts, lists and sets, also those that are
default values of functions, and what functions set on its classes. What they hold is exchanged when another rank goes
on. Of packages that are not named here these are the modules that speak of torch.distributed, of what torchrun tells a
process, or of devices, and of them what functions set, and of all modules the instances that classes keep
(`singletons`). What modules make of the environment as they are loaded is in `rank_constants`.
"""

from __future__ import annotations

import contextlib
import copy
import dis
import functools
import importlib
import importlib.machinery
import inspect
import itertools
import operator
import re
import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from torchemu import runtime
from torchemu.frontends.torch import rank_constants, singletons, yaml_classes
from torchemu.frontends.torch.first_loads import FirstLoads
from torchemu.frontends.torch.rank_constants import Constant
from torchemu.frontends.torch.registers import Registries
from torchemu.frontends.torch.session import Session
from torchemu.runtime.frames import is_installed

PACKAGES = ("megatron", "megatron_core", "transformer_engine", "deepspeed", "accelerate")
"""Packages whose modules' variables are exchanged."""

SETTING = (
    "ignite", "fairscale", "detectron2", "mmengine", "torchtitan", "torchtune", "composer", "colossalai", "yunchang",
    "wandb", "mlflow", "swanlab",
)  # fmt: skip
"""Packages of which only those are exchanged that functions set: what else is in their modules is filled by imports."""

ATTRIBUTES = {
    "loguru": (
        ("logger._core", "activation_list"),
        ("logger._core", "activation_none"),
        ("logger._core", "enabled"),
        ("logger._core", "extra"),
        ("logger._core", "handlers"),
        ("logger._core", "handlers_count"),
        ("logger._core", "levels"),
        ("logger._core", "levels_ansi_codes"),
        ("logger._core", "levels_lookup"),
        ("logger._core", "min_level"),
        ("logger._core", "patcher"),
    ),
    "matplotlib._pylab_helpers": (("Gcf", "figs"),),
    "omegaconf.omegaconf": (("BaseContainer", "_resolvers"), ("Config", "_resolvers")),  # the second is version 1's
    "torch.testing._internal.distributed.distributed_test": (("Barrier", "barrier_id"),),
    "torch.autograd.graph": (("", "_allow_mutation_on_saved_tensors_enabled"),),
    "torch.distributed._shard.api": (("", "_CURRENT_PROCESS_GROUP"),),
    "torch.distributed._shard.sharded_tensor.api": (("", "_sharded_tensor_map"),),
    "torch.distributed.elastic.metrics.api": (("", "_default_metrics_handler"), ("", "_metrics_map")),
    "torch.distributed.elastic.timer.api": (("", "_timer_client"),),
    "torch.distributed.fsdp._fsdp_extensions": (("", "_extensions"),),
    "torch.distributed.fsdp._fully_shard._fully_shard": (("", "_enable_fsdp_module_new_init"),),
    "torch.distributed.fsdp.wrap": (
        ("_ConfigAutoWrap", "in_autowrap_context"),
        ("_ConfigAutoWrap", "wrapper_cls"),
        ("_ConfigAutoWrap", "kwargs"),
    ),
    "torch.distributed.fsdp._debug_utils": (("SimpleProfiler", "profiling"), ("SimpleProfiler", "results")),
    "torch.distributed.tensor._api": (("DTensor._op_dispatcher", "_custom_op_handlers"),),
    "torch.distributed.tensor._random": (("", "_rng_tracker"),),
    "torch.distributed.tensor._redistribute": (
        ("", "_FORCE_MIN_COST_REDISTRIBUTION_PLAN"),
        ("", "_DISABLE_REDISTRIBUTE_TRANSFORM_OPTIMIZATION"),
    ),
    "torch.distributed.tensor.experimental._context_parallel._attention": (
        ("", "_dispatch_mode"),
        ("", "_replaced_functions"),
    ),
    "torch.nn.functional": (("", "scaled_dot_product_attention"),),
    "torch.nn.parallel.distributed": (("DistributedDataParallel", "_active_ddp_module"),),
    "torch.nn.utils.parametrize": (("", "_cache"), ("", "_cache_enabled")),
    "torch.utils.checkpoint": (
        ("DefaultDeviceType", "_default_device_type"),
        ("", "_checkpoint_debug_enabled"),
        ("", "_enable_checkpoint_early_stop"),
    ),
}
"""Attributes of classes that are exchanged, of objects that classes have, and of modules themselves, by module."""

PATCHES = {
    "deepspeed.runtime.zero.partition_parameters": ("shutdown_init_context", "restore_init_context"),
}
"""The functions of modules that take a rank's patches of PyTorch's classes away, and put them in place again."""

_KNOWING_RANKS = ("torch", "torchemu")
"""Packages that have a state for each rank without this."""

_DEVICES = frozenset({"cuda", "device", "to"})
"""Names by which functions put tensors on a device."""

_bootstrap: Any = vars(importlib)["_bootstrap"]
_MISSING = object()
_INSTRUCTIONS = ("STORE_GLOBAL", "DELETE_GLOBAL")
_LOADS_OWN = tuple(name for name in dis.opmap if name.startswith("LOAD_FAST"))
_LOADS = ("LOAD_GLOBAL", "LOAD_NAME")


def _one_of(*names: str) -> bytes:
    """Returns the pattern of one of some instructions, among a function's."""
    return b"[" + b"".join(re.escape(bytes([dis.opmap[name]])) for name in names) + b"]"


_SETS = re.compile(_one_of(*_INSTRUCTIONS))
_STORES = re.compile(_one_of(*_LOADS) + rb"\0*" + _one_of("STORE_ATTR", "COPY"))  # 0 are an instruction's caches
_STORES_OWN = re.compile(_one_of(*_LOADS, *_LOADS_OWN) + rb"\0*" + _one_of("STORE_ATTR", "COPY"))
_CONTAINERS = (dict, list, set)
_COPIED = (*_CONTAINERS, OrderedDict)
_PLAIN = (int, float, bool, str, type(None))
_FUNCTIONS = (types.FunctionType, staticmethod, classmethod)


class Variable:
    """A variable that each rank has for itself.

    Args:
        owner: the module, a class, a function or another object.
        name: its name.
        is_there: it has been there before any function has set it, so that other ranks begin with what it is.

    Attributes:
        noted: what it was when this was made.
    """

    __slots__ = ("_first", "_get", "name", "noted", "owner")

    def __init__(self, owner: Any, name: str, is_there: bool = True) -> None:
        self.owner, self.name, self._get = owner, name, vars(owner).get
        self.noted = self.value()
        self._first = _copied(self.noted) if is_there else _MISSING

    def value(self) -> Any:
        """Returns the present value."""
        return self._get(self.name, _MISSING)

    def first(self) -> Any:
        """Returns the value that a rank begins with."""
        return _copied(self._first)

    def begin_with(self, value: Any) -> None:
        """Lets ranks begin with another value."""
        self._first = _copied(value)

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
    return copy.copy(value) if type(value) in _COPIED else value


def _is_of_code(value: Any) -> bool:
    """Returns whether a value is a class or function, or has nothing but such, and is the same for all ranks so."""
    if type(value) in _COPIED:
        found = value.values() if isinstance(value, dict) else value
        return bool(found) and all(map(_is_of_code, found))
    return isinstance(value, type | types.FunctionType)


def _are_same(one: Any, other: Any) -> bool:
    """Returns whether two values are the same one, or are dicts, lists or sets that have the same."""
    if type(one) is not type(other) or type(one) not in _COPIED:
        return one is other
    if isinstance(one, dict):
        return _are_same([*one, *one.values()], [*other, *other.values()])
    return len(one) == len(other) and all(map(operator.is_, one, other))


_lasting: dict[tuple[int, str], Variable | Constant] = {}
"""Variables of modules that stay loaded when a run ends, by what has them and their names."""


class Variables:
    """The variables of one run. They are exchanged when ranks change.

    Args:
        noted: those that were noted before.
    """

    def __init__(self, noted: Iterable[Variable | Constant] = ()) -> None:
        self._all: list[Variable | Defaults | Constant] = [*noted]
        self._kept: dict[runtime.Context | None, list[Any]] = {}
        self._instances: list[Variable] = []

    def note_instances(self, module: types.ModuleType, code: types.CodeType) -> None:
        """Notes those in which classes of a module keep instances."""
        names = singletons.names_in(_functions(code))
        for kind, name in singletons.kept_by(_classes(module), names) if names else ():
            if (id(kind), name) not in _lasting:
                variable = _lasting[id(kind), name] = Variable(kind, name)
                self._all.append(variable)
                self._instances.append(variable)

    @contextlib.contextmanager
    def loading(self, module: types.ModuleType) -> Iterator[None]:
        """Gives all ranks the instances that are made while a module is loaded: variables of it hold them, too. So it
        does with the classes and functions that the module tells others of, as a process that loads it does, and with
        what the module's own variables are in the end: modules that it imports may set some later."""
        before = [_copied(variable.value()) for variable in self._instances]
        held = {id(variable): variable.value() for variable in self._all if isinstance(variable, Variable)}
        yield
        for variable, old in itertools.zip_longest(self._instances, before, fillvalue=_MISSING):
            assert isinstance(variable, Variable)
            more = singletons.added(variable.first() if old is _MISSING else old, variable.value())
            if more is not None:
                self._give(variable, more)
        for at, each in enumerate(self._all):
            if not isinstance(each, Variable) or each.value() is held.get(id(each), each.noted):
                continue
            if each.owner is module or _is_of_code(each.value()):
                self._tell(at, each)

    def _tell(self, at: int, variable: Variable) -> None:
        """Gives a variable its value for all ranks that have what they have begun with.

        Args:
            at: its place among all.
            variable: the variable.
        """
        first, value = variable.first(), variable.value()
        variable.begin_with(value)
        for kept in self._kept.values():
            if at < len(kept) and _are_same(kept[at], first):
                kept[at] = variable.first()

    def _give(self, variable: Variable, more: Any) -> None:
        """Gives each rank an instance, or some, where it has none."""
        variable.begin_with(singletons.joined(variable.first(), more))
        at = next(i for i, each in enumerate(self._all) if each is variable)
        for kept in self._kept.values():
            if at < len(kept):
                kept[at] = singletons.joined(kept[at], more)

    def note_set(self, module: types.ModuleType, code: types.CodeType) -> None:
        """Notes what the functions of a module, of a package that is not named here, set in it and on its classes."""
        own: list[tuple[Any, str]] = [(module, name) for name in sorted(_set_by(code))]
        own += [(kind, name) for kind in _classes(module) for name in sorted(_set_on(kind, code))]
        loaded = list(_stored(code))  # what no function has set
        for owner, name in [*own, *_remembered(module, code)]:
            if (id(owner), name) not in _lasting:
                is_functions = isinstance(owner, types.FunctionType) and owner.__module__ == module.__name__
                is_there = not is_functions or (owner.__name__, name) in loaded
                variable = _lasting[id(owner), name] = Variable(owner, name, is_there)
                self._all.append(variable)

    def note_constants(self, module: types.ModuleType, code: types.CodeType, source: Callable[[], bytes]) -> None:
        """Notes what a module has made of what torchrun tells a process."""
        for constant in rank_constants.of(module, code, source):
            _lasting[id(module), constant.name] = constant
            self._all.append(constant)

    def note(self, module: types.ModuleType, code: types.CodeType | None) -> None:
        """Notes those of a module that has just been executed."""
        names = _set_by(code) if code is not None else set()
        if code is not None:
            new = [pair for pair in _remembered(module, code) if not self._has(*pair)]
            self._all += [Variable(owner, name) for owner, name in new]
        if _package(module.__name__) in SETTING:
            self._all += [Variable(module, name) for name in sorted(names)]
            return
        held = {n for n, v in vars(module).items() if type(v) in _CONTAINERS and not n.startswith("__")}
        self._all += [Variable(module, name) for name in sorted(names | held)]
        for kind in _classes(module):
            counters = _set_on(kind, code) if code is not None else set()
            self._all += [Variable(kind, name) for name in sorted({*_registries(kind), *counters})]
        self._all += [Defaults(function) for owner in (module, *_classes(module)) for function in _counting(owner)]

    def _has(self, owner: Any, name: str) -> bool:
        """Reports whether a variable is noted: a module's by its own functions, and by those of another one."""
        known = (variable for variable in self._all if isinstance(variable, Variable))
        return any(variable.owner is owner and variable.name == name for variable in known)

    def note_attributes(self, module: types.ModuleType) -> None:
        """Notes attributes of its classes, of those that this version of it has."""
        for kind, name in ATTRIBUTES.get(module.__name__, ()):
            with contextlib.suppress(AttributeError):
                self._all.append(Variable(operator.attrgetter(kind)(module) if kind else module, name))

    def note_one(self, owner: Any, name: str) -> None:
        """Notes an attribute, where it is not noted; of an installed package's, which stays loaded when a run ends."""
        if (id(owner), name) not in _lasting:
            variable = _lasting[id(owner), name] = Variable(owner, name)
            self._all.append(variable)

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
    """Returns attributes of a class that functions of its module, of which it is given the code, set: counters, say."""
    classes = [[each.__name__] for each in kind.__mro__]
    return {
        attribute
        for inner in _functions(code)
        for owner, attribute in _stored(inner)
        if owner == kind.__name__ or (owner == "cls" and inner.co_qualname.split(".")[-2:-1] in classes)
        if type(vars(kind).get(attribute)) in _PLAIN
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
        if _SETS.search(inner.co_code[::2])
        for instruction in dis.get_instructions(inner)
        if instruction.opname in _INSTRUCTIONS
    }


def _remembered(module: types.ModuleType, code: types.CodeType) -> list[tuple[Any, str]]:
    """Returns the attributes that functions of a module, of which it is given the code, set on functions, modules and
    objects of its package: a cache of groups, say."""
    names = {pair for inner in _functions(code) for pair in _stored(inner)}
    found = [(vars(module).get(owner), attribute) for owner, attribute in sorted(names)]
    return [(owner, attribute) for owner, attribute in found if _remembers(owner, _package(module.__name__))]


def _stored(code: types.CodeType) -> Iterator[tuple[str, str]]:
    """Yields what a function, or the module itself, sets as an attribute of a global name, or of the class that it is a
    method of, by ``=`` or, say, ``+=``: the names of both."""
    is_of_class = code.co_varnames[:1] == ("cls",)
    if not (_STORES_OWN if is_of_class else _STORES).search(code.co_code[::2]):
        return
    does = list(dis.get_instructions(code))
    for first, second, third in zip(does, does[1:], does[2:], strict=False):
        owner = first.argval
        if is_of_class and first.opname in _LOADS_OWN:
            owner = owner[-1] if isinstance(owner, tuple) else owner
            if owner != "cls":
                continue
        elif first.opname not in _LOADS:
            continue
        if second.opname == "STORE_ATTR":
            yield owner, second.argval
        elif (second.opname, third.opname) == ("COPY", "LOAD_ATTR"):
            yield owner, third.argval


def _remembers(owner: Any, package: str) -> bool:
    """Returns whether what a global name stands for is a function, or a module or an object of a class of the
    package."""
    if isinstance(owner, types.FunctionType):
        return True
    if isinstance(owner, types.ModuleType):
        return _package(owner.__name__) == package
    is_object = not isinstance(owner, type | types.ModuleType) and hasattr(owner, "__dict__")
    return is_object and _package(type(owner).__module__) == package


def _speaks_of_ranks(code: types.CodeType) -> bool:
    """Returns whether the code of a module names torch.distributed, or what torchrun tells a process."""
    inner = [code, *_functions(code)]
    names = set().union(*(each.co_names for each in inner))
    if {"torch", "distributed"} <= names or any(name.startswith("torch.distributed") for name in names):
        return True
    return not rank_constants.TOLD.isdisjoint(
        const for each in inner for const in each.co_consts if isinstance(const, str)
    )


def _speaks_of_devices(code: types.CodeType) -> bool:
    """Returns whether functions of a module that uses torch name a device: they may keep a tensor there."""
    if "torch" not in code.co_names:
        return False
    inner = [*_functions(code)]
    if any(not _DEVICES.isdisjoint(each.co_names) for each in inner):
        return True
    return any("device" in const for each in inner for const in each.co_consts if isinstance(const, tuple))


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


def _executing(
    variables: Variables, registries: Registries, first: FirstLoads
) -> Callable[[importlib.machinery.SourceFileLoader, types.ModuleType], None]:
    """Returns the method by which loaders execute a module, which notes what functions of a package's set."""

    def exec_module(self: importlib.machinery.SourceFileLoader, module: types.ModuleType) -> None:
        code = self.get_code(module.__name__)
        if code is None:
            raise ImportError(f"cannot load module {module.__name__!r} when get_code() returns None")
        package = _package(module.__name__)
        if package in _KNOWING_RANKS or not is_installed(self.path):
            _bootstrap._call_with_frames_removed(exec, code, vars(module))
            return
        with first.noting(module.__name__), variables.loading(module), registries.loading(module.__name__):
            _bootstrap._call_with_frames_removed(exec, code, vars(module))
        if package not in PACKAGES:
            registries.note(module, code)
        variables.note_constants(module, code, lambda: self.get_data(self.path))
        if package not in PACKAGES:
            variables.note_instances(module, code)
        if package not in (*PACKAGES, *SETTING) and (_speaks_of_ranks(code) or _speaks_of_devices(code)):
            variables.note_set(module, code)

    return exec_module


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


def install(run: Session, first: FirstLoads) -> None:
    """Gives ranks variables of their own, until the run ends.

    Args:
        run: the run.
        first: notes what loading sets beside variables of modules.
    """
    variables, registries = Variables(_lasting.values()), Registries()
    run.on_load[yaml_classes.MODULE] = functools.partial(yaml_classes.separate, run, variables.note_one)
    for name in ATTRIBUTES:
        if name in sys.modules:
            variables.note_attributes(sys.modules[name])
    for name, act in run.on_load.items():
        if name in sys.modules:
            act(sys.modules[name])
    loader = importlib.machinery.SourceFileLoader
    run.replace(loader, "exec_module", _executing(variables, registries, first))
    finder = _Finder(variables, run.on_load)
    sys.meta_path.insert(0, finder)
    run.stack.callback(sys.meta_path.remove, finder)
    run.stack.callback(_forget)
    run.on_switch += [variables.exchange, registries.exchange]
    run.stack.callback(registries.end)


def _forget() -> None:
    """Unloads the packages: the next run notes their variables as it loads them."""
    for name in [name for name in sys.modules if _package(name) in (*PACKAGES, *SETTING)]:
        del sys.modules[name]
