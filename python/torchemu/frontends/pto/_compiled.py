"""Compiled kernels and orchestrations: they are C++ on the stack of a greenlet, and call back for all that they do."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from torchemu.frontends.pto._calls import Calls, Surroundings
from torchemu.frontends.pto._core import Core
from torchemu.frontends.pto._elements import number_of
from torchemu.frontends.pto._lines import Lines
from torchemu.frontends.pto._memory import CONTEXT, TensorArg
from torchemu.frontends.pto._program import running

_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int64), ctypes.c_int, ctypes.c_char_p, ctypes.c_int
)
_TENSOR = np.dtype(
    [
        ("addr", "<u8"),
        ("size", "<u8"),
        ("start_offset", "<u8"),
        ("ndims", "<u4"),
        ("dtype", "<u4"),
        ("shapes", "<u4", 5),
        ("strides", "<u4", 5),
    ]
)
_GIVEN = np.dtype(
    [("data", "<u8"), ("shapes", "<u4", 5), ("ndims", "<u4"), ("dtype", "<u4"), ("padding", "<u4"), ("tensor", _TENSOR)]
)
_FIRST_ADDRESS = 1 << 44
"""Scalars below are no addresses of a machine."""


class Library:
    """A shared library that the compiler has made of a source.

    Args:
        file: the shared library.

    Attributes:
        lines: tells the lines of its code.
    """

    def __init__(self, file: Path) -> None:
        self._library = ctypes.PyDLL(str(file))  # the interpreter stays locked: calls come back at once
        self._run = self._library.torchemu_run
        self._run.restype = None
        self._run.argtypes = (ctypes.c_void_p, ctypes.c_void_p, _CALLBACK, ctypes.c_size_t, ctypes.c_size_t)
        self.lines = Lines(file)

    def symbol(self, name: str) -> int | None:
        """Returns the address of a function; None where there is none of the name."""
        try:
            return ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value
        except AttributeError:
            return None

    def run(self, entry: int, argument: int, memory: np.ndarray, calls: Calls) -> None:
        """Calls a function with the address of its argument, which is in memory that it may use.

        Raises:
            BaseException: what an operation has raised, or what is wrong with the function.
        """
        low = _address(memory)
        callback = _CALLBACK(calls.call)
        self._run(entry, argument, callback, low, low + memory.nbytes)
        calls.end()


@functools.cache
def library(file: Path) -> Library:
    """The library in a file, which is loaded once."""
    return Library(file)


def _address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


class CompiledKernel:
    """A kernel, which is called with tensors and scalars.

    Args:
        file: the library.
        core: aiv or aic.

    Raises:
        RuntimeError: there is no kernel_entry in it.
    """

    def __init__(self, file: Path, core: str, source: str) -> None:
        self._library, self._core = library(file), core
        entry = self._library.symbol("kernel_entry")
        if entry is None:
            raise RuntimeError(f'{source} has no function extern "C" void kernel_entry(__gm__ int64_t *args)')
        self._entry = entry

    def __call__(self, args: Sequence[TensorArg | int]) -> None:
        """Runs it to its end, in the greenlet of its program."""
        program = running()
        assert program.core is not None
        memory = _arguments(args, program.core)
        calls = Calls(program, Surroundings(self._library.lines, self._core))
        self._library.run(self._entry, _address(memory), memory, calls)


def _arguments(args: Sequence[TensorArg | int], core: Core) -> np.ndarray:
    """The words of a kernel's arguments, and behind them what they point to."""
    parts: list[np.ndarray | int] = [
        _tensor(arg, core) if isinstance(arg, TensorArg) else _scalar(arg, core) for arg in args
    ]
    tails = [part.view(np.uint8).ravel() for part in parts if isinstance(part, np.ndarray)]
    memory = np.zeros(8 * len(args) + sum(t.nbytes for t in tails) + 8, np.uint8)
    words = memory[: 8 * len(args)].view(np.uint64)
    at = 8 * len(args)
    for i, part in enumerate(parts):
        if isinstance(part, np.ndarray):
            data = part.view(np.uint8).ravel()
            memory[at : at + data.nbytes] = data
            words[i] = _address(memory) + at
            at += data.nbytes
        else:
            words[i] = part
    return memory


def _tensor(arg: TensorArg, core: Core) -> np.ndarray:
    """A Tensor whose address is one of the process."""
    record = _tensor_record(arg)
    record["addr"] = _in_process(arg.buffer.addr, core) if arg.buffer.addr else 0
    return record


def _tensor_record(arg: TensorArg) -> np.ndarray:
    """A Tensor as C++ knows it, with the machine's address."""
    record = np.zeros(1, _TENSOR)
    n = len(arg.shapes)
    record["addr"], record["size"], record["start_offset"] = arg.buffer.addr, arg.buffer.size, arg.start_offset
    record["ndims"], record["dtype"] = n, number_of(arg.dtype)
    record["shapes"][0, :n], record["strides"][0, :n] = arg.shapes, arg.strides
    return record


def _in_process(address: int, core: Core) -> int:
    region = core.in_process(address)
    return region.place + address - region.address


def _scalar(value: int, core: Core) -> np.ndarray | int:
    """Returns the value that a kernel gets for a scalar: for the machine's addresses those in the process, and a
    CommContext of such."""
    if value < _FIRST_ADDRESS:
        return value
    try:
        region = core.in_process(value)
    except RuntimeError:
        return value  # it is a number
    place = region.place + value - region.address
    if not core.is_context(value):
        return place
    context = np.ctypeslib.as_array((ctypes.c_uint8 * CONTEXT.itemsize).from_address(place)).view(CONTEXT).copy()
    for field in ("windowsIn", "windowsOut"):
        for i in range(int(context["rankNum"][0])):
            context[field][0, i] = _in_process(int(context[field][0, i]), core)
    return context


class CompiledOrchestration:
    """A function that submits kernels.

    Args:
        file: the library.
        name: the function's; config: that of the one that says how many arguments it wants, or "".

    Raises:
        RuntimeError: there is no such function in it.
    """

    def __init__(self, file: Path, name: str, config: str, source: str) -> None:
        self._library, self._name = library(file), name
        entry = self._library.symbol(name)
        if entry is None:
            raise RuntimeError(f'{source} has no function extern "C" void {name}(const ChipStorageTaskArgs &)')
        self._entry = entry
        self._config = self._library.symbol(config) if config else None
        if config and self._config is None:
            raise RuntimeError(f"{source} has no function {config}(const ChipStorageTaskArgs &)")

    def __call__(self, args: Sequence[Any]) -> None:
        """Runs it to its end, with all kernels that it submits.

        Raises:
            ValueError: it wants another number of arguments.
        """
        program = running()
        memory = _task_arguments(args)
        self._check(args, memory)
        try:
            calls = Calls(program, Surroundings(self._library.lines, "aiv"))
            self._library.run(self._entry, _address(memory), memory, calls)
        finally:
            if program.core is not None:
                program.core.free()

    def _check(self, args: Sequence[Any], memory: np.ndarray) -> None:
        if self._config is None:
            return
        wanted = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._config)(_address(memory))
        if wanted not in (0, len(args)):
            raise ValueError(f"{self._name} wants {wanted} arguments, tensors and scalars together; it got {len(args)}")


def _task_arguments(args: Sequence[Any]) -> np.ndarray:
    """A ChipStorageTaskArgs, and behind it what it points to."""
    tensors = [arg for arg in args if isinstance(arg, TensorArg)]
    scalars = [arg for arg in args if not isinstance(arg, TensorArg)]
    head = 24
    memory = np.zeros(head + len(tensors) * _GIVEN.itemsize + 8 * len(scalars) + 8, np.uint8)
    start = _address(memory)
    behind = head + len(tensors) * _GIVEN.itemsize
    memory[:16].view(np.uint64)[:] = start + head, start + behind
    memory[16:24].view(np.int32)[:] = len(tensors), len(scalars)
    records = memory[head:behind].view(_GIVEN)
    for record, arg in zip(records, tensors, strict=True):
        n = len(arg.shapes)
        record["data"], record["ndims"], record["dtype"] = arg.buffer.addr, n, number_of(arg.dtype)
        record["shapes"][:n], record["tensor"] = arg.shapes, _tensor_record(arg)[0]
    memory[behind : behind + 8 * len(scalars)].view(np.uint64)[:] = scalars
    return memory
