"""Running a bench: a Python file with ``run(torch)``, on a World of its own."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from torchemu import runtime
from torchemu.errors import CommandError
from torchemu.frontends import base, stand_ins
from torchemu.profile.run import reader, traced
from torchemu.report import nccl_table

T = TypeVar("T")

_PACKAGE = Path(__file__).resolve().parents[1]
_OWN = (_PACKAGE / "benches", _PACKAGE.parents[1] / "benches")
"""Where the benches are that come with a wheel, and those of a checkout."""

_MODULE = "torchemu_bench"  # what a bench's module is called while it runs


class BenchError(CommandError):
    """A bench cannot be run; the text says why."""


def load(file: str | Path) -> Callable[[Any], None]:
    """The run function of a bench file.

    Raises:
        BenchError: there is no such file, or it has no plain function run that takes one argument.
    """
    path = _existing(file)
    spec = importlib.util.spec_from_file_location(_MODULE, path.resolve())
    if spec is None or spec.loader is None:
        raise BenchError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    run = getattr(module, "run", None)
    if not callable(run):
        raise BenchError(f"{path}: a bench has a function run(torch), this file has none")
    _check(path, run)
    return run


def _check(path: Path, run: Callable[..., Any]) -> None:
    if any(
        is_so(run) for is_so in (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    ):
        raise BenchError(f"{path}: a bench's run is called, which runs nothing of a coroutine or a generator")
    try:
        inspect.signature(run).bind(None)
    except TypeError:
        raise BenchError(f"{path}: a bench's run is called with one argument, run(torch)") from None


def _existing(file: str | Path) -> Path:
    """The bench of a user's, or the one of this name that comes with torchemu."""
    path = Path(file)
    if path.is_dir():
        raise BenchError(f"{path}: a folder, where a bench is a Python file")
    if path.is_file():
        return path
    for folder in _OWN if path.name == str(file) else ():
        if (own := folder / path.with_suffix(".py").name).is_file():
            return own
    raise BenchError(f"{path}: no such file")


@dataclass(frozen=True)
class Trace:
    """The trace of a run, see torchemu.profile.run.traced."""

    path: str = ""
    level: str = ""
    profiled_only: bool = False


def run(
    file: str | Path,
    topology: str = runtime.DEFAULT_TOPOLOGY,
    ccl: str | Sequence[str] = "",
    trace: Trace = Trace(),
    strictness: runtime.Strictness | None = None,
    torch: str | None = None,
) -> None:
    """Runs a bench and prints a line for each collective that it ran.

    Args:
        file: the bench.
        topology: a preset's name or a topology.yaml.
        ccl: a ccl.yaml; empty for the built-in one; or several, with each of which the bench is run.
        trace: what is traced, and where to; without, nothing. Of several runs, the last.
        strictness: how strictly device programs are run.
        torch: the value of --torch, whose torch the bench gets; None is torchemu's own.

    Raises:
        BenchError: one of the files is missing or wrong; the text has every problem.
    """
    file = _existing(file)
    configs = [ccl] if isinstance(ccl, str) else ccl
    lines = []
    for c in configs:
        named = {"ccl": c} if len(configs) > 1 else {}
        lines += [{**named, **line} for line in _collectives_of(file, (topology, c, strictness), trace, torch)]
    print()
    print(nccl_table.table(lines))
    if trace.path:
        print(f"\ntrace written to {trace.path}; open it in {reader(trace.path)}")


def _collectives_of(
    file: str | Path, setting: tuple[Any, ...], trace: Trace, torch: str | None
) -> list[dict[str, Any]]:
    """Runs a bench in a World of its own, opened with the setting; returns the World's log."""
    with contextlib.ExitStack() as stack:
        world = _checked(lambda: stack.enter_context(runtime.opened(*setting)))
        _checked(lambda: stack.enter_context(stand_ins.opened(base.torch_named(torch), world)))
        stack.enter_context(_neighbours_importable(Path(file)))
        _checked(lambda: stack.enter_context(traced(world, trace.path, trace.level, trace.profiled_only)))
        print(f"{Path(file).name} on {world.topology} ({world.sips} SIPs)", flush=True)
        load(file)(importlib.import_module("torch"))
        world.main.wait_for_all()
        return world.collectives()


@contextlib.contextmanager
def _neighbours_importable(file: Path) -> Iterator[None]:
    """Lets a bench import the modules that lie beside it, as a script can."""
    folder = str(file.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)
        sys.modules.pop(_MODULE, None)


def _checked(step: Callable[[], T]) -> T:
    """Returns the step's result; that a file or name which the user gave is wrong becomes a BenchError."""
    try:
        return step()
    except (OSError, ValueError, ImportError) as error:
        raise BenchError(str(error)) from error
