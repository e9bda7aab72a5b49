"""State of a process that installed packages set as they are loaded: seeds, variables of the environment, switches.

Such a package is loaded once, by the first rank that imports it. What its modules have set then of what each rank has
for itself is noted, and set for another rank when that imports them. What tells ranks apart is left alone.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch._tensor_str import PRINT_OPTS

from torchemu import runtime
from torchemu.frontends.torch.session import Session
from torchemu.frontends.torch.switches import Switches
from torchemu.runtime import seeds

_RANKS_OWN = ("RANK", "CUDA_VISIBLE_DEVICES", "WORLD_SIZE")
"""Parts of the names of variables that tell ranks apart."""

Step = Callable[[], object]

_noted: dict[str, list[Step]] = {}
"""Steps that set what loading modules has set, by their names: they stay loaded when a run ends."""
_packages: set[str] = set()  # of these modules


class _Seen(NamedTuple):
    """The state of a rank that modules may set."""

    variables: dict[str, str]
    path: list[str]
    filters: list[Any]
    seed: int
    dtype: torch.dtype
    grads: bool
    printing: tuple[dict[str, Any], dict[str, Any]]
    switches: dict[Any, Any]


class FirstLoads:
    """Sets for ranks what loading has set for the first one.

    Args:
        run: the run.
        switches: those of its ranks.
    """

    def __init__(self, run: Session, switches: Switches) -> None:
        self._switches = switches
        self._loading: dict[runtime.Context, list[Step]] = {}
        self._has: dict[runtime.Context, set[str]] = {}
        seeds.hearers.append(self._hear)
        run.stack.callback(seeds.hearers.remove, self._hear)
        run.replace(builtins, "__import__", self._importing(builtins.__import__))
        run.replace(importlib, "import_module", self._importing_by_name(importlib.import_module))

    @contextlib.contextmanager
    def noting(self, name: str) -> Iterator[None]:
        """Notes what loading an installed module sets. What it loads in turn is a part of that."""
        context = runtime.running()
        if context is None or context in self._loading:
            yield
            return
        steps = self._loading[context] = []
        before = self._seen()
        try:
            yield
        finally:
            del self._loading[context]
            steps += self._differences(before, self._seen())
            self._has.setdefault(context, set()).add(name)
            if steps:
                _noted[name] = steps
                _packages.add(name.partition(".")[0])

    def _seen(self) -> _Seen:
        return _Seen(
            dict(os.environ),
            list(sys.path),
            list(warnings.filters),
            torch.initial_seed(),
            torch.get_default_dtype(),
            torch.is_grad_enabled(),
            ({**np.get_printoptions()}, dict(vars(PRINT_OPTS))),
            self._switches.values(),
        )

    def _differences(self, before: _Seen, after: _Seen) -> Iterator[Step]:
        """Lists what sets the one state where there was the other."""
        yield from _of_python(before, after)
        if after.seed != before.seed:
            yield functools.partial(torch.manual_seed, after.seed)
        if after.dtype is not before.dtype:
            yield functools.partial(torch.set_default_dtype, after.dtype)
        if after.grads != before.grads:
            yield functools.partial(torch.set_grad_enabled, after.grads)
        for key, value in after.switches.items():
            if value != before.switches.get(key, self._switches.first(key)):
                yield functools.partial(self._switches.put, key, value)

    def _hear(self, again: Step) -> None:
        """Notes a seed that a module gives as it is loaded."""
        context = runtime.running() if self._loading else None
        if context is not None and context in self._loading:
            self._loading[context].append(again)

    def _importing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def importing(
            name: str,
            globals: Any = None,  # noqa: A002 (Python's names)
            locals: Any = None,  # noqa: A002
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> Any:
            module = real(name, globals, locals, fromlist, level)
            if not level and name.partition(".")[0] in _packages:
                self._set(name, fromlist or ())
            return module

        return importing

    def _importing_by_name(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def import_module(name: str, package: str | None = None) -> Any:
            module = real(name, package)
            if name.partition(".")[0] in _packages:
                self._set(name, ())
            return module

        return import_module

    def _set(self, name: str, parts: Sequence[str]) -> None:
        """Sets for the running rank what loading modules has set, unless it has that already."""
        context = runtime.running()
        if context is None or context in self._loading:
            return
        has = self._has.setdefault(context, set())
        names = name.split(".")
        for whole in (*(".".join(names[: i + 1]) for i in range(len(names))), *(f"{name}.{part}" for part in parts)):
            if whole in _noted and whole not in has:
                has.add(whole)
                for step in _noted[whole]:
                    step()


def _of_python(before: _Seen, after: _Seen) -> Iterator[Step]:
    """Lists what sets the one state of Python and NumPy, and of printing, where there was the other."""
    for name in before.variables.keys() | after.variables.keys():
        value = after.variables.get(name)
        if value != before.variables.get(name) and not any(part in name for part in _RANKS_OWN):
            yield functools.partial(_set_variable, name, before.variables.get(name), value)
    for place, folder in enumerate(after.path):
        if folder not in before.path:
            yield functools.partial(_add_folder, folder, place == 0)
    added = [one for one in after.filters if one not in before.filters]
    if added:
        yield functools.partial(_filter, added)
    if after.printing != before.printing:
        yield lambda: np.set_printoptions(**after.printing[0])
        yield lambda: vars(PRINT_OPTS).update(after.printing[1])


def _set_variable(name: str, before: str | None, value: str | None) -> None:
    """Sets a variable of the environment where the program has not set it: a module may have looked."""
    if os.environ.get(name) != before:
        return
    if value is None:
        del os.environ[name]
    else:
        os.environ[name] = value


def _add_folder(folder: str, is_first: bool) -> None:
    sys.path.insert(0 if is_first else len(sys.path), folder)


def _filter(added: list[Any]) -> None:
    warnings.filters[:0] = added  # type: ignore[index]
    warnings._filters_mutated()  # type: ignore[attr-defined]


def install(run: Session, switches: Switches) -> FirstLoads:
    """Sets for each rank what loading sets, until the run ends."""
    return FirstLoads(run, switches)
