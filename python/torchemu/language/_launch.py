"""Kernels and their launches."""

from __future__ import annotations

import functools
import inspect
import json
import math
import os
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from torchemu import dtypes, runtime
from torchemu.bridge.binding import go
from torchemu.language import _program, _windows
from torchemu.language._machine import Machine, machine_of
from torchemu.language._pointer import Pointer
from torchemu.language._program import Program
from torchemu.language.inside import Inside
from torchemu.runtime import frames
from torchemu.runtime.buffer import Buffer, Memory, buffer_of, chosen

COLLECTIVES = tuple(row["name"] for row in json.loads(go.CollectiveTable())["kinds"] if row["kernel"])
"""Collectives that a kernel can say that it is."""


class Kernel:
    """A function that runs on devices; see :func:`kernel`.

    Attributes:
        function: what runs.
        collective: which one it is, or None.
        place: where it is: the same for all ranks, also where each has modules of its own.
        interlock: whether pipes wait for each other where they use the same tile.
    """

    def __init__(self, function: Callable[..., None], collective: str | None, interlock: bool) -> None:
        functools.update_wrapper(self, function)
        self.function, self.collective, self.interlock = function, collective, interlock
        self.name: str = function.__name__
        code = function.__code__
        self.place = (code.co_filename, code.co_firstlineno, code.co_qualname)
        self._signature = inspect.signature(function)

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        """Returns a launcher of the kernel, with so many programs on this rank, each on a PE of its own: ``kernel[4]``,
        or in up to three dimensions ``kernel[4, 2]``; or among the ranks of a process group: ``kernel[4, group]``,
        ``kernel[(4, 2), group]``."""
        group = None
        if isinstance(grid, tuple) and len(grid) == 2 and (not isinstance(grid[1], int) or grid[1] < 0):
            grid, group = grid  # a group of other ranks is a negative number
        return functools.partial(self._launch, _sizes(grid), group)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Calls the function from another kernel.

        Raises:
            RuntimeError: outside of kernels, where it is launched.
        """
        if _program.running() is None:
            raise RuntimeError(f"kernel {self.name!r} is launched with a grid: {self.name}[1](...)")
        self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<kernel {self.name!r}>"

    def _launch(self, grid: tuple[int, ...], group: Any, *args: Any, **kwargs: Any) -> None:
        """Puts the kernel on this rank's current stream.

        Raises:
            RuntimeError: it is called in a kernel.
            TypeError: the arguments are not the function's, or not such as kernels have.
            ValueError: a tensor is not contiguous, or not on the rank's device; the grid is too large; the rank is no
                member of the group.
        """
        if _program.running() is not None:
            raise RuntimeError(f"a kernel cannot launch another one: call its function, {self.name}(...)")
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"kernel {self.name!r}, {self.name}{self._signature}: {error}") from None
        bound.apply_defaults()
        context = runtime.current()
        launch = Launch(machine_of(context.world), context, self, ranks_of(context, group), bound)
        launch.sizes = grid
        launch.start(math.prod(grid))


def kernel(
    function: Callable[..., None] | None = None, *, collective: str | None = None, interlock: bool = True
) -> Any:
    """Makes a function a kernel: a program for a rank's device, written with :mod:`torchemu.language`.

    ``name[grid](args…)`` puts it on the rank's current stream. Its arguments are tensors, which it gets as pointers to
    their first elements, and numbers, strings, dtypes and None.

    Args:
        collective: all_reduce, all_gather or reduce_scatter, for a kernel that ccl.yaml names: the function then has
            the parameters ``(out, source, n, op)``.
        interlock: pipes wait for each other where they use the same tile. Without, they are ordered by flags only.

    Raises:
        ValueError: there is no such collective, or it is to be without interlock.
    """
    if collective is not None and collective not in COLLECTIVES:
        raise ValueError(f"a kernel can be one of {', '.join(COLLECTIVES)}, not {collective!r}")
    if collective is not None and not interlock:
        raise ValueError("a kernel that is a collective has the interlock")
    if function is None:
        return functools.partial(kernel, collective=collective, interlock=interlock)
    return Kernel(function, collective, interlock)


class Launched:
    """One rank's launch of a kernel, which programs are a part of.

    Attributes:
        context: on behalf of which rank the programs run.
        inside: what they see of it.
        kernel: what runs.
        ranks: all that take part, as ranks of the World.
        index, rank: which one of them this is, and which one of the World's.
        handle: the core's.
        sizes: of the grid, the first dimension's is the fastest; empty where it has one dimension.
        number: which launch of the kernel among these ranks it is on this rank: 1, 2, …
        over: all its programs have ended.
    """

    over = False
    sizes: tuple[int, ...] = ()

    def __init__(
        self, machine: Machine, context: runtime.Context, kernel: Kernel, ranks: tuple[int, ...], index: int
    ) -> None:
        self.machine, self.context, self.kernel = machine, context, kernel
        self.ranks, self.index, self.rank = ranks, index, ranks[index]
        self.inside = Inside(context, f'"{kernel.name}" on rank {self.rank}', "torchemu.language (tl.load, tl.put, …)")
        self.handle = self.number = 0

    def count(self) -> None:
        """Gives it its number."""
        self.number = self.machine.count(self.kernel, self.ranks, self.rank)

    def call(self) -> None:
        """Runs the function, in a program."""
        raise NotImplementedError

    def failed(self, program: Program, error: BaseException) -> None:
        """Ends it, because a program of it has ended with an exception."""
        raise NotImplementedError

    def look(self) -> None:
        """Lets go of what it has if all its programs have ended; called when one has."""
        raise NotImplementedError

    def program(self, handle: int, block: int, blocks: int) -> Program:
        """Makes one of its programs, of the core's handle."""
        return Program(self.machine, self, handle, block, blocks)

    def barrier(self, block: int) -> int:
        """The barrier of the programs of one number on all ranks."""
        return self.machine.barrier(self.kernel, self.ranks, block)

    def is_internal(self, file: str) -> bool:
        """Reports whether a file is none of the program's, and no kernel that this package ships."""
        return frames.is_ours(file) and not file.startswith(_KERNELS)

    def report(self, error: BaseException) -> str:
        """Returns the words by which the host gets to know of an exception."""
        shown = traceback.TracebackException.from_exception(error)
        frames.cut(shown, self.is_internal)
        where = f" at {shown.stack[-1].filename}:{shown.stack[-1].lineno}" if shown.stack else ""
        what = "".join(shown.format_exception_only()).strip()
        text = "".join(shown.format()).rstrip()
        return f"kernel {self.kernel.name!r} on rank {self.rank} failed{where}: {what}\n{text}"


_KERNELS = os.path.join(os.path.dirname(__file__), "kernels", "")


class StreamLaunch(Launched):
    """A launch on a stream, with what its kernel uses: tensors, and windows over memory of theirs."""

    def __init__(
        self, machine: Machine, context: runtime.Context, kernel: Kernel, ranks: tuple[int, ...], index: int
    ) -> None:
        super().__init__(machine, context, kernel, ranks, index)
        self._buffers: list[Buffer] = []
        self._windows: dict[Memory, int] = {}

    def failed(self, program: Program, error: BaseException) -> None:
        """Ends the launch, because a program of it has ended with an exception."""
        go.PrimEnd(program.handle, self.report(error))
        self.machine.kill(lambda launch: launch is self)

    def look(self) -> None:
        """Lets go of the tensors if all programs have ended."""
        if self.handle in self.machine.launches and go.PrimLaunchEnded(self.handle):
            del self.machine.launches[self.handle]
            self.over = True
            self._buffers.clear()
            self._free()

    def has_begun(self) -> None:
        """Makes it known that it is on its stream."""
        self.machine.launches[self.handle] = self
        self.count()
        chosen().launched(self._buffers, self)

    def _free(self) -> None:
        """Lets go of the windows, and of what else it has."""
        raise NotImplementedError


class Launch(StreamLaunch):
    """A launch on a stream."""

    def __init__(
        self,
        machine: Machine,
        context: runtime.Context,
        kernel: Kernel,
        ranks: tuple[int, ...],
        bound: inspect.BoundArguments,
    ) -> None:
        super().__init__(machine, context, kernel, ranks, ranks.index(context.rank))
        self._bound: inspect.BoundArguments | None = bound

    def start(self, blocks: int) -> None:
        """Puts it on the stream."""
        assert self._bound is not None
        arguments = self._bound.arguments
        try:
            for name, value in arguments.items():
                arguments[name] = self._converted(name, value)
            chosen().launching(self.kernel.name, self._buffers)
            handles = _windows.used(self._buffers)
            windows = self._windows.values()
            stream = self.context.stream
            self.handle = go.PrimLaunch(
                self.machine.handle, stream, self.kernel.name, blocks, self.kernel.interlock, handles, windows
            )
        except BaseException:
            self._free()
            raise
        self.has_begun()

    def call(self) -> None:
        """Runs the function, in a program."""
        assert self._bound is not None
        self.kernel.function(*self._bound.args, **self._bound.kwargs)

    def _converted(self, name: str, value: Any) -> Any:
        buffer = buffer_of(value)
        if buffer is not None:
            return self._pointer(name, buffer)
        if isinstance(value, tuple | list):
            return type(value)(self._converted(name, v) for v in value)
        if value is None or isinstance(value, int | float | str | dtypes.dtype):
            return value
        raise TypeError(
            f"argument {name} of kernel {self.kernel.name!r} is of type {type(value).__name__}; kernels take tensors, "
            "numbers, strings, dtypes and None"
        )

    def _pointer(self, name: str, t: Buffer) -> Pointer:
        what = f"argument {name} of kernel {self.kernel.name!r}"
        if t.world is not self.context.world:
            raise RuntimeError(f"{what} belongs to another World, or to one that is closed")
        if not t.device.is_sip or t.device.index not in (None, self.context.own_device):
            own = f"a kernel of rank {self.context.rank} uses tensors on its own device, {self.context.own_device}"
            raise ValueError(f"{what} is on {t.device}; {own}")
        if not t.is_contiguous():
            raise ValueError(f"{what} is not contiguous: give it t.contiguous()")
        self._buffers.append(t)
        return Pointer(self._address(name, t.memory) + t.storage_offset() * t.dtype.itemsize, t.dtype, self.ranks)

    def _address(self, name: str, memory: Memory) -> int:
        """Returns where the memory of an argument is in the rank's: for this launch, unless it is symmetric memory."""
        rank = self.context.rank
        symmetric = self.machine.heap.own(memory, rank, f"argument {name} of kernel {self.kernel.name!r}")
        if symmetric:
            return go.PrimAddress(symmetric, rank, 0)
        if memory.nbytes == 0:
            return 0
        if memory not in self._windows:
            where = f"argument {name} of kernel {self.kernel.name}"
            args = (self.machine.handle, where, rank, memory.data_ptr(), memory.nbytes)
            self._windows[memory] = go.PrimAttach(*args)
        return go.PrimAddress(self._windows[memory], rank, 0)

    def _free(self) -> None:
        self._bound = None
        for window in self._windows.values():
            go.PrimFree(window)
            go.Release(window)
        self._windows.clear()


def ranks_of(context: runtime.Context, group: Any = None) -> tuple[int, ...]:
    """Returns the ranks that a launch of a rank is among: the group's; or the default group's, or else all that were
    spawned.

    Raises:
        TypeError, ValueError: it is no process group, or the rank is no member.
    """
    if group is None:
        group = context.of_ranks()
        if group is not None:
            return tuple(group.ranks)
        return tuple(range(context.tasks.nprocs)) if context.tasks is not None else (context.rank,)
    ranks = getattr(group, "ranks", None)
    if ranks is None:
        raise TypeError(f"a kernel is launched among the ranks of a process group, not of {group!r}")
    if context.rank not in ranks:
        raise ValueError(f"rank {context.rank} is not a member of the group, whose members are {list(ranks)}")
    return tuple(ranks)


def _sizes(grid: Any) -> tuple[int, ...]:
    """The sizes of a grid of one to three dimensions.

    Raises:
        TypeError, ValueError: it is not one.
    """
    sizes = tuple(grid) if isinstance(grid, Sequence) and not isinstance(grid, str) else (grid,)
    if any(isinstance(n, bool) or not isinstance(n, int) for n in sizes) or not 1 <= len(sizes) <= 3:
        raise TypeError(f"a grid is one to three numbers of programs, such as kernel[4] or kernel[4, 2], not {grid!r}")
    if min(sizes) < 1:
        raise ValueError(f"a grid has at least one program, not {grid}")
    return sizes
