"""Kernels by their sources: compiled, in Python in a file beside the source, or torchemu's own examples by name.

What the compiler gives for a source is a key, and here is what the key opens.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from torchemu.bridge.binding import go
from torchemu.c10d.ops import KINDS
from torchemu.frontends.pto import _compiler
from torchemu.frontends.pto._compiled import CompiledKernel
from torchemu.frontends.simpler._arguments import DataType, TaskArgs
from torchemu.runtime.rank_local import RankLocal

if TYPE_CHECKING:
    from torchemu.frontends.simpler._memory import Seat

_KEY = b"torchemu kernel "
_ORCHESTRATION = b"torchemu orchestration "
_SUFFIX = "_kernel"
_ENTRY = "kernel_entry"
_ALSO = {"allreduce": "allreduce_onephase", "domain_allreduce_sum": "allreduce_onephase"}
"""Names of sources that do not say which example is meant."""


class Kernel(Protocol):
    """A program for a chip.

    Attributes:
        name: that of its source.
    """

    @property
    def name(self) -> str: ...

    def submit(self, place: Place) -> int:
        """Gives a task to the machine; returns its job."""


class Place(Protocol):
    """A task on its way to the machine.

    Attributes:
        name: the task's.
        ranks: those of the machine that are to run it.
        after: the jobs that it follows.
        arguments: of each rank.
    """

    machine: int
    name: str
    ranks: tuple[int, ...]
    after: list[int]
    arguments: tuple[TaskArgs, ...]

    def address(self, i: int, tensor: int) -> int:
        """Returns where a tensor of the i-th rank is for its kernel."""

    def seat(self, context: int) -> Seat:
        """The seat in a domain whose CommContext is at an address."""

    def run(self, body: Callable[..., None]) -> int:
        """Submits a kernel in Python."""


# -- keys


def compiled(source: Path, core: str, include_dirs: Sequence[str | os.PathLike[str]]) -> bytes:
    """Compiles a kernel, or finds what runs in its place, and says so; returns its key.

    Raises:
        RuntimeError: the compiler has found something wrong, or there is none; or there is no such file, and no kernel
            is known by its name: the text says which are, and how to write one. Or the file with one in Python has no
            kernel_entry.
    """
    twin = source.with_suffix(".py").absolute()
    what = {"source": str(source.absolute()), "core": core}
    if twin.is_file():
        _entry(twin)
        if source.is_file():
            say(f"{source.name} was not compiled: {twin.name} beside it runs instead")
    elif source.is_file() and _compiler.available():
        what["library"] = str(_compiler.compiled_kernel(source.absolute(), core, include_dirs))
    else:
        say(f"{uncompiled(source)}; torchemu's own {_stand_in(source, twin)} runs instead")
    return _KEY + json.dumps(what).encode()


def _stand_in(source: Path, twin: Path) -> str:
    """The name of the example that runs in place of a source."""
    try:
        return _example(source.stem, twin).example.removeprefix("allreduce_")
    except RuntimeError as error:
        raise RuntimeError(f"{uncompiled(source)}, and {error}" if source.is_file() else str(error)) from None


def uncompiled(source: Path) -> str:
    """Says that a source was not compiled, and why."""
    return f"{source.name} was not compiled ({_compiler.MISSING if source.is_file() else f'there is no {source}'})"


_said: RankLocal[set[str]] = RankLocal(set)


def say(text: str) -> None:
    """Tells the user once what runs in place of a source."""
    if text not in _said.get():
        _said.get().add(text)
        print(f"torchemu: {text}", file=sys.stderr)


@dataclass(frozen=True)
class OrchestrationSource:
    """The source of an orchestration, as far as there is one.

    Attributes:
        file: in C++, which need not exist.
        library: what it has been compiled to; None where it has not.
    """

    file: Path
    library: Path | None

    @property
    def twin(self) -> Path:
        """Returns the path that its Python twin would have."""
        return self.file.with_suffix(".py")


def compiled_orchestration(source: Path, include_dirs: Sequence[str | os.PathLike[str]]) -> bytes:
    """Compiles an orchestration, where there is its file and no other in Python, and returns its key.

    Raises:
        RuntimeError: the compiler has found something wrong.
    """
    file = source.absolute()
    what = {"source": str(file)}
    if file.with_suffix(".py").is_file():
        if file.is_file():
            say(f"{file.name} was not compiled: {file.stem}.py beside it runs instead")
    elif file.is_file() and _compiler.available():
        what["library"] = str(_compiler.compiled_orchestration(file, include_dirs))
    return _ORCHESTRATION + json.dumps(what).encode()


def orchestration_of(binary: bytes) -> OrchestrationSource | None:
    """The orchestration that a key is for; None where it is no such key."""
    if not binary.startswith(_ORCHESTRATION):
        return None
    what = json.loads(binary.removeprefix(_ORCHESTRATION))
    return OrchestrationSource(Path(what["source"]), Path(what["library"]) if "library" in what else None)


def kernel_of(binary: bytes) -> Kernel:
    """The kernel that a key is for.

    Raises:
        ValueError: it is not a key of compiled.
        RuntimeError: the source has no kernel_entry.
    """
    if not binary.startswith(_KEY):
        raise ValueError("a kernel's binary has to be what KernelCompiler.compile_incore returned")
    what = json.loads(binary.removeprefix(_KEY))
    source = Path(what["source"])
    if "library" in what:
        return PythonKernel(source.stem, CompiledKernel(Path(what["library"]), what["core"], str(source)))
    twin = source.with_suffix(".py")
    if twin.is_file():
        return PythonKernel(twin.stem, _entry(twin))
    return _example(source.stem, twin)


_functions: RankLocal[dict[tuple[Path, str], Callable[..., None]]] = RankLocal(dict)


def _entry(file: Path) -> Callable[..., None]:
    """The kernel in a file."""
    return loaded(file, _ENTRY, "the kernel")


def loaded(file: Path, name: str, what: str) -> Callable[..., None]:
    """A function in a file, which is loaded once.

    Raises:
        RuntimeError: there is no such function in it.
    """
    functions = _functions.get()
    if (file, name) not in functions:
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if not callable(getattr(module, name, None)):
            raise RuntimeError(f"{file} has no function {name}(args), which would be {what}")
        functions[file, name] = getattr(module, name)
    return functions[file, name]


def _example(stem: str, twin: Path) -> ExampleKernel:
    name = stem.removesuffix(_SUFFIX)
    name = _ALSO.get(name, name)
    known = json.loads(go.PrimExamples())
    if name not in known:
        sources = ", ".join(sorted(f"{n}{_SUFFIX}" for n in (*known, *_ALSO)))
        raise RuntimeError(
            f"no kernel is known as {stem!r}. Known without further ado are {sources}. "
            f"To run one of your own, write {_ENTRY}(args) in Python, with the instructions of torchemu.pto, in {twin}"
        )
    return ExampleKernel(stem, name)


# -- kernels


@dataclass(frozen=True)
class PythonKernel:
    """A function, perhaps a compiled one, that is called with the arguments of one chip."""

    name: str
    entry: Callable[..., None]

    def submit(self, place: Place) -> int:
        """Acts as Kernel.submit."""
        return place.run(self.entry)


@dataclass(frozen=True)
class ExampleKernel:
    """One of torchemu's examples: (input, output, scratch, nranks, device_ctx), a broadcast with root after nranks.

    Attributes:
        example: its name in the core.
    """

    name: str
    example: str

    def submit(self, place: Place) -> int:
        """Acts as Kernel.submit.

        Raises:
            ValueError: the arguments are not what the kernel wants.
        """
        domains = [number for i in range(len(place.ranks)) for number in _domain(self.example, place, i)]
        job: int = go.PrimSubmitExample(place.machine, place.name, self.example, place.ranks, domains, place.after)
        return job


def _blocks(example: str) -> tuple[bool, bool]:
    """Reports whether input and output have a block for each member."""
    kind = KINDS.get(example.replace("allgather", "all_gather"))
    return kind.blocks if kind is not None else (False, False)


def _domain(example: str, place: Place, i: int) -> list[int]:
    """The arguments of one rank as the core wants them: how many members there are, rank, count, root, the addresses of
    input, output and scratch, and the members."""
    args = place.arguments[i]
    rooted = example == "broadcast"
    if (args.tensor_count(), args.scalar_count()) != (3, 3 if rooted else 2):
        raise ValueError(
            f"{example} wants the tensors input, output and scratch, and the scalars nranks, {'root, ' * rooted}"
            f"device_ctx; it was given {args.tensor_count()} tensors and {args.scalar_count()} scalars"
        )
    seat = place.seat(args.scalar(args.scalar_count() - 1))
    n = len(seat.ranks)
    if args.scalar(0) != n:
        raise ValueError(f"{example}: nranks is {args.scalar(0)}, and the domain has {n} members")
    count = _count(example, [args.tensor(0), args.tensor(1)], n)
    scratch = place.address(i, 2)
    needed, room = go.PrimExampleBytes(example, n, count), seat.base + seat.nbytes - scratch
    if scratch < seat.base or room < needed:
        raise ValueError(
            f"{example} of {count} elements on {n} ranks needs {needed} bytes of scratch in the window of device_ctx, "
            f"where {seat.nbytes} bytes begin at {seat.base:#x}; scratch begins at {scratch:#x}"
        )
    root = args.scalar(1) if rooted else 0
    return [n, seat.place, count, root, place.address(i, 0), place.address(i, 1), scratch, *seat.ranks]


def _count(example: str, tensors: Sequence[Any], n: int) -> int:
    """The elements of the vector, or of a block."""
    many = _blocks(example)
    sizes = [math.prod(t.shapes) for t in tensors]
    count = sizes[0] // n if many[0] else sizes[0]
    wanted = [count * n if m else count for m in many]
    if sizes != wanted or any(t.dtype is not DataType.FLOAT32 for t in tensors):
        kinds = [f"{size} of {t.dtype.name}" for size, t in zip(sizes, tensors, strict=True)]
        forms = ["a block for each rank" if m else "one block" for m in many]
        raise ValueError(
            f"{example} on {n} ranks wants FLOAT32, {forms[0]} as input and {forms[1]} as output; it was given {kinds}"
        )
    return count
