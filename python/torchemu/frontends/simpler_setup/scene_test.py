"""simpler_setup.scene_test: tests that say what is compiled, what it is called with, and what has to come out.

A class with ``@scene_test(level, runtime)`` has CALLABLE, CASES, generate_args and compute_golden; its method test_run
is what pytest calls, with the fixtures st_platform and st_worker.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from torchemu.frontends import numpy as torch
from torchemu.frontends.simpler.task_interface import (
    ArgDirection,
    CallConfig,
    ChipCallable,
    ContinuousTensor,
    CoreCallable,
    TaskArgs,
    TensorArgType,
    make_tensor_arg,
    scalar_to_uint64,
)
from torchemu.frontends.simpler.worker import Worker
from torchemu.frontends.simpler_setup._standalone import parsed
from torchemu.frontends.simpler_setup.kernel_compiler import KernelCompiler

if TYPE_CHECKING:
    import pytest

C = TypeVar("C", bound=type)
_TAGS = {
    ArgDirection.IN: TensorArgType.INPUT,
    ArgDirection.OUT: TensorArgType.OUTPUT_EXISTING,
    ArgDirection.INOUT: TensorArgType.INOUT,
}
CHIP, HOST = 2, 3
"""Levels: one chip, and a host with its chips."""


class TensorArg(NamedTuple):
    """A tensor that a test is called with."""

    name: str
    value: Any


class Scalar(NamedTuple):
    """A number that a test is called with: one of ctypes'."""

    name: str
    value: Any


Tensor = TensorArg
"""Its name in earlier versions."""


class TaskArgsBuilder:
    """The tensors, then the scalars, that a test is called with; they are its attributes by their names.

    Raises:
        ValueError: a tensor comes after a scalar.
    """

    def __init__(self, *specs: TensorArg | Scalar) -> None:
        self._specs: list[TensorArg | Scalar] = []
        for spec in specs:
            self._add(spec)

    def _add(self, spec: TensorArg | Scalar) -> None:
        if isinstance(spec, TensorArg) and any(isinstance(before, Scalar) for before in self._specs):
            raise ValueError(f"tensor {spec.name!r} after a scalar: all tensors come before the scalars")
        self._specs.append(spec)

    def add_tensor(self, name: str, value: Any) -> None:
        """Adds a tensor, before all scalars."""
        self._add(TensorArg(name, value))

    def add_scalar(self, name: str, value: Any) -> None:
        """Adds a scalar, one of ctypes'."""
        self._add(Scalar(name, value))

    def __getattr__(self, name: str) -> Any:
        for spec in self.__dict__.get("_specs", ()):
            if spec.name == name:
                return spec.value
        raise AttributeError(f"there is no argument {name!r}")

    def clone(self) -> TaskArgsBuilder:
        """The same with tensors of their own."""
        return TaskArgsBuilder(
            *(
                TensorArg(spec.name, spec.value.clone())
                if isinstance(spec, TensorArg)
                else Scalar(spec.name, copy.copy(spec.value))
                for spec in self._specs
            )
        )

    @property
    def specs(self) -> list[TensorArg | Scalar]:
        """The arguments in their order."""
        return self._specs

    def tensor_names(self) -> list[str]:
        """The names of the tensors."""
        return [spec.name for spec in self._specs if isinstance(spec, TensorArg)]


class CallableNamespace:
    """The entries of a test's CALLABLE by their names: what register returned, and as ``name_sig`` a signature."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self._entries = dict(entries)
        self._kept: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        entries = self.__dict__.get("_entries", {})
        if name not in entries:
            raise AttributeError(f"there is no callable {name!r}: CALLABLE has {', '.join(entries)}")
        return entries[name]

    def keep(self, *objects: Any) -> Any:
        """Keeps objects until the test has ended; returns them."""
        self._kept.extend(objects)
        return objects[0] if len(objects) == 1 else objects or None


def clear_compile_cache() -> None:
    """Does nothing: what is compiled is kept in files."""


def build_task_args(arguments: TaskArgsBuilder, signature: Sequence[ArgDirection]) -> tuple[TaskArgs, list[str]]:
    """The arguments of a task, with tags by the signature; and the names of the tensors that it writes.

    Raises:
        ValueError: there are more tensors than the signature has.
    """
    args, written = TaskArgs(), []
    for number, spec in enumerate(arguments.specs):
        if isinstance(spec, Scalar):
            args.add_scalar(scalar_to_uint64(spec.value))
            continue
        if number >= len(signature):
            raise ValueError(f"tensor {spec.name!r} is number {number}, and the signature has {len(signature)}")
        args.add_tensor(make_tensor_arg(spec.value), _TAGS.get(signature[number], TensorArgType.INPUT))
        if signature[number] in (ArgDirection.OUT, ArgDirection.INOUT):
            written.append(spec.name)
    return args, written


_build_l3_task_args = _build_chip_task_args = build_task_args  # as published tests call it


def _rehosted_ref_for(arguments: TaskArgsBuilder, tensor: Any) -> ContinuousTensor:
    """The argument of a task for one of a test's tensors: published tests ask for it by this name."""
    return make_tensor_arg(tensor)


_rehosted_buffer_for = _rehosted_ref_for


def compile_chip_callable_spec(
    spec: Mapping[str, Any], platform: str, runtime: str, cache_key: Any = None
) -> ChipCallable:
    """Compiles an entry of CALLABLE: its orchestration and its incores.

    Raises:
        RuntimeError, ValueError: as KernelCompiler's.
    """
    orchestration, compiler = spec["orchestration"], KernelCompiler(platform)
    includes = compiler.get_orchestration_include_dirs(runtime)
    children = []
    for core in spec["incores"]:
        binary = compiler.compile_incore(core["source"], core["core_type"], extra_include_dirs=includes)
        children.append((core["func_id"], CoreCallable.build(core.get("signature", []), binary)))
    binary = compiler.compile_orchestration(runtime, orchestration["source"])
    signature, name = orchestration.get("signature", []), orchestration["function_name"]
    return ChipCallable.build(signature, name, binary, children, orchestration.get("config_name", ""))


_compile_chip_callable_from_spec = compile_chip_callable_spec


def scene_test(level: int, runtime: str) -> Callable[[C], C]:
    """A decorator for test classes: level 2 for one chip, 3 for a host with its chips.

    Sources in CALLABLE are paths from the class's file on.

    Raises:
        ValueError: there is no such level.
    """
    if level not in (CHIP, HOST):
        raise ValueError(f"level {level}: there are levels {CHIP}, one chip, and {HOST}, a host with its chips")

    def decorate(cls: C) -> C:
        cls._st_level, cls._st_runtime = level, runtime  # type: ignore[attr-defined]
        found = cls.__dict__.get("CALLABLE")
        if found is not None:
            cls.CALLABLE = _resolved(found, Path(inspect.getfile(cls)).parent)  # type: ignore[attr-defined]
        return cls

    return decorate


def _resolved(spec: Any, folder: Path) -> Any:
    """A CALLABLE whose sources are whole paths."""
    if isinstance(spec, dict):
        return {
            key: os.path.normpath(folder / value) if key == "source" else _resolved(value, folder)
            for key, value in spec.items()
        }
    return [_resolved(entry, folder) for entry in spec] if isinstance(spec, list) else spec


class SceneTestCase:
    """A test of what CALLABLE says, in each of CASES.

    Attributes:
        CALLABLE: level 2: an orchestration and incores; level 3: a function ``orchestration(orch, callables, args,
            config)``, and callables, each with a name and either these two or a Python function, ``callable``.
        CASES: name, platforms, params, config (device_count, num_sub_workers) and manual of each.
        RTOL, ATOL: how far results may differ from the golden ones.
    """

    CALLABLE: ClassVar[dict[str, Any]] = {}
    CASES: ClassVar[list[dict[str, Any]]] = []
    RTOL: float = 1e-5
    ATOL: float = 1e-5
    _st_level: int
    _st_runtime: str

    def generate_args(self, params: Any) -> TaskArgsBuilder:
        """The arguments of a case."""
        raise NotImplementedError

    def compute_golden(self, args: TaskArgsBuilder, params: Any) -> None:
        """Writes into a case's tensors what has to come out."""
        raise NotImplementedError

    @classmethod
    def compile_chip_callable(cls, platform: str) -> ChipCallable:
        """Compiles CALLABLE, of level 2."""
        return compile_chip_callable_spec(cls.CALLABLE, platform, cls._st_runtime)

    def test_run(self, st_platform: str, st_worker: Worker, request: pytest.FixtureRequest) -> None:
        """Runs the cases for the platform that the command asks for."""
        option = request.config.getoption
        wanted = Selection(option("--case", default=None) or (), option("--manual", default="exclude"))
        cases = list(wanted.of(type(self), st_platform))
        if not cases:
            import pytest

            pytest.skip(f"no case of {type(self).__name__} for {st_platform}, manual {wanted.manual}")
        for case in cases:
            self.run_case(st_worker, case, option("--rounds", default=1), option("--skip-golden", default=False))

    def run_case(self, worker: Worker, case: Mapping[str, Any], rounds: int = 1, skip_golden: bool = False) -> None:
        """Runs a case so many times, on a Worker that `registered` has given its callables.

        Raises:
            AssertionError: the results are not the golden ones.
        """
        params = case.get("params", {})
        args = self.generate_args(params)
        golden = args.clone()
        before = args.clone()
        if not skip_golden:
            self.compute_golden(golden, params)
        config = CallConfig()
        vars(config).update({k: v for k, v in case.get("config", {}).items() if hasattr(config, k)})
        for again in range(rounds):
            for name in args.tensor_names() if again else ():
                getattr(args, name).copy_(getattr(before, name))
            names = self._run(worker, args, config)
            if not skip_golden:
                self._compare(args, golden, names)

    def _run(self, worker: Worker, args: TaskArgsBuilder, config: CallConfig) -> list[str]:
        """Runs it once; returns the names of the tensors that are to be as the golden ones."""
        callables = worker.st_callables  # type: ignore[attr-defined] # of `registered`
        if self._st_level == CHIP:
            given, names = build_task_args(args, self.CALLABLE["orchestration"].get("signature", []))
            worker.run(callables, given, config)
            return names
        orchestration = type(self).CALLABLE["orchestration"]
        worker.run(lambda orch, _args, _config: orchestration(orch, callables, args, config))
        return args.tensor_names()

    def _compare(self, args: TaskArgsBuilder, golden: TaskArgsBuilder, names: Sequence[str]) -> None:
        for name in names:
            actual, wanted = getattr(args, name), getattr(golden, name)
            if not torch.allclose(actual, wanted, rtol=self.RTOL, atol=self.ATOL):
                differs = (actual - wanted).abs().max().item()
                raise AssertionError(
                    f"{name} is not the golden one: it differs by {differs}; rtol {self.RTOL}, atol {self.ATOL}"
                )

    @staticmethod
    def run_module(name: str) -> None:
        """Runs the tests of a module from the command line, ``-p platform -d 0-3``, and ends the program."""
        import sys

        module, options = sys.modules[name], parsed()
        wanted = Selection(options.case or (), options.manual)
        found = [c for c in vars(module).values() if isinstance(c, type) and hasattr(c, "_st_level")]
        failed = 0
        for cls in found:
            for case in wanted.of(cls, options.platform):
                try:
                    with worker_of(cls, options.platform, options.devices) as worker:
                        cls().run_case(worker, case, options.rounds, options.skip_golden)
                    print(f"PASSED {cls.__name__}::{case['name']}")
                except Exception as error:
                    failed += 1
                    print(f"FAILED {cls.__name__}::{case['name']}: {type(error).__name__}: {error}")
        sys.exit(1 if failed else 0)


class Selection:
    """The cases that a command asks for.

    Args:
        selectors: "case", "Class::case" or "Class::"; none for all.
        manual: exclude, include or only: those that say manual, for the platform or for all.
    """

    def __init__(self, selectors: Sequence[str], manual: str) -> None:
        self._selectors = [(name.rpartition("::")[0], name.rpartition("::")[2]) for name in selectors]
        self.manual = manual

    def of(self, cls: type[SceneTestCase], platform: str) -> Iterator[dict[str, Any]]:
        """The cases of a class."""
        for case in cls.CASES:
            chosen = any(owner in ("", cls.__name__) and name in ("", case["name"]) for owner, name in self._selectors)
            if platform in case["platforms"] and self._fits(case, platform) and (chosen or not self._selectors):
                yield case

    def _fits(self, case: Mapping[str, Any], platform: str) -> bool:
        manual = case.get("manual", False)
        is_manual = platform in manual if isinstance(manual, (list, tuple)) else bool(manual)
        return self.manual == "include" or is_manual == (self.manual == "only")


@contextlib.contextmanager
def worker_of(cls: type[SceneTestCase], platform: str, devices: Sequence[int]) -> Iterator[Worker]:
    """A Worker for a class's cases, with its callables registered.

    Raises:
        ValueError: the cases need more devices than there are.
    """
    configs = [case.get("config", {}) for case in cls.CASES]
    count = 1 if cls._st_level == CHIP else max((c.get("device_count", 1) for c in configs), default=1)
    if count > len(devices):
        raise ValueError(f"{cls.__name__} needs {count} devices, and --device has {list(devices)}")
    subs = max((c.get("num_sub_workers", 0) for c in configs), default=0)
    chips = list(devices[:count])
    worker = Worker(cls._st_level, platform=platform, runtime=cls._st_runtime, device_ids=chips, num_sub_workers=subs)
    worker.st_callables = _registered(worker, cls, platform)  # type: ignore[attr-defined]
    worker.init()
    try:
        yield worker
    finally:
        worker.close()


def _registered(worker: Worker, cls: type[SceneTestCase], platform: str) -> int | CallableNamespace:
    """Registers a class's callables; returns what they are known by."""
    if cls._st_level == CHIP:
        return worker.register(cls.compile_chip_callable(platform))
    entries: dict[str, Any] = {}
    for entry in cls.CALLABLE.get("callables", []):
        if "callable" in entry:
            entries[entry["name"]] = worker.register(entry["callable"])
        else:
            chip = compile_chip_callable_spec(entry, platform, cls._st_runtime)
            entries[entry["name"]] = worker.register(chip)
            entries[f"{entry['name']}_sig"] = entry["orchestration"].get("signature", [])
    return CallableNamespace(entries)
