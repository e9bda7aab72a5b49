"""Tests that ranks run: what is behind ``@torchemu.distributed``."""

from __future__ import annotations

import contextlib
import importlib
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torchemu import runtime
from torchemu.c10d import lifecycle
from torchemu.frontends import base, stand_ins
from torchemu.launch import failures
from torchemu.launch.isolation import Isolation
from torchemu.launch.transfer import Parcel
from torchemu.runtime import fabric
from torchemu.runtime.environ import Launch
from torchemu.runtime.tasks import Failure, Tasks

_SKIPS = ("SkipTest", "Skipped")  # unittest's exception and pytest's

ORIGINAL = "torchemu_original"
"""The attribute of a decorated test that is the function itself."""


@dataclass(frozen=True)
class Setting:
    """The settings of a test's run; see torchemu.pytest_plugin.distributed."""

    world_size: int | None
    topology: str
    ccl: str
    seed: int
    isolate: Collection[str] | None
    virtual_clock: bool
    check: bool
    reorder: int | None
    faults: str | Sequence[Mapping[str, Any]]
    torch: str | None = None


def run(function: Callable[..., Any], setting: Setting, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Calls a test function once a rank.

    Raises:
        What the first rank to fail raised, with a note that says which one it was. OSError or ValueError: the topology,
        the ccl.yaml or the faults are wrong, or do not fit. ImportError: the torch that is named cannot run here.
    """
    __tracebackhide__ = True
    torch = base.torch_named(setting.torch)
    with contextlib.ExitStack() as stack:
        try:
            launch, world = _opened(stack, setting)
        except (OSError, ValueError) as error:
            raise error.with_traceback(None) from None  # the mistake is in a file, and not in frames of ours
        stack.enter_context(stand_ins.opened(torch, world, setting.seed))
        isolate = base.isolated(torch.name) if setting.isolate is None else setting.isolate
        isolation = stack.enter_context(Isolation(setting.seed, isolate, virtual_clock=setting.virtual_clock))
        processes = [isolation.process(rank, launch.variables(rank)) for rank in range(launch.world_size)]
        call = _Call(function, args, kwargs, isolation.own_names(), torch.groups_in_tests)
        tasks = Tasks(world.main, call, (), len(processes), processes)
        launch.place(tasks.contexts)
        tasks.run()
    if tasks.interrupt is not None:
        raise tasks.interrupt
    if tasks.failures:
        raise _cause(failures.ordered(tasks.failures))


def _opened(stack: contextlib.ExitStack, setting: Setting) -> tuple[Launch, runtime.World]:
    """One node of so many ranks, or as many nodes as they fill."""
    nodes, sips = fabric.shape(setting.topology)
    size = setting.world_size or nodes * sips
    full = size <= nodes * sips and size % sips == 0
    launch = Launch(nproc=sips, nnodes=size // sips) if full else Launch(nproc=size)
    strictness = runtime.Strictness(setting.check, setting.reorder)
    topology = stack.enter_context(fabric.fitting(setting.topology, launch.nnodes, launch.nproc))
    world = stack.enter_context(runtime.opened(topology, setting.ccl, strictness))
    if setting.faults:
        world.add_faults(setting.faults, launch.world_size)
    return launch, world


class _Call:
    """The call of a test in a rank: of the rank's own copy of the function, where its module is the program's."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        own: Collection[str],
        has_group: bool,
    ) -> None:
        self._function, self._own, self._has_group = function, own, has_group
        self._args = [Parcel(value, own, shared=True) for value in args]
        self._kwargs = {name: Parcel(value, own, shared=True) for name, value in kwargs.items()}

    def __call__(self, rank: int) -> None:
        __tracebackhide__ = True
        if self._has_group:
            _hand_down_group()
        function = self._in_rank()
        function(*(p.open() for p in self._args), **{name: p.open() for name, p in self._kwargs.items()})

    def _in_rank(self) -> Callable[..., Any]:
        name = self._function.__qualname__
        if self._function.__module__ not in self._own or "<locals>" in name:
            return self._function
        module = importlib.import_module(self._function.__module__)
        return getattr(operator.attrgetter(name)(module), ORIGINAL, self._function)


def _hand_down_group() -> None:
    """Gives the rank a default group as if its parent had made it: it may also make its own."""
    context = runtime.current()
    lifecycle.init_process_group()
    context.inherited, context.group = context.group, None


def _cause(failed: list[Failure]) -> BaseException:
    """The exception that the test fails with: a failed assertion rather than a rank's wish to skip the test."""
    first = next((f for f in failed if type(f.exception).__name__ not in _SKIPS), failed[0])
    error = failures.told(first.exception)
    error.__traceback__ = failures.of_program(error.__traceback__)
    when = failures.moment(first.time_ps)
    error.add_note(f"This is rank {first.rank}, the first to fail, at {when} of simulated time.")
    others = [f for f in failed if f is not first]
    if others:
        error.add_note("\n".join(["After it failed", *failures.grouped(others)]))
    return error
