"""The device programs of a World: who takes which turn."""

from __future__ import annotations

import os
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import greenlet
import numpy as np

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.errors import MismatchError
from torchemu.language._program import Killed, Program
from torchemu.language._symmetric import Heap
from torchemu.runtime import footprints

if TYPE_CHECKING:
    from torchemu.language._launch import Kernel, Launched

_AGAIN = -1  # the answer of go.PrimTurn that something in Go had its turn
_FIRST_DUE = -2  # that of an instruction whose result is to be made, and below


class Machine:
    """A World's device programs.

    Attributes:
        handle: the core's.
        world: the World.
        launches: those that have not ended, by the core's handle.
        kernels: those that run collectives, by these.
    """

    def __init__(self, world: runtime.World) -> None:
        self.world = world
        strict = world.strictness
        self.handle: int = go.PrimOfWorld(world.handle, strict.check, strict.reorder is not None, strict.reorder or 0)
        self.launches: dict[int, Launched] = {}
        self._scratch: dict[tuple[int, int], np.ndarray] = {}
        self._programs: dict[int, Program] = {}
        self._lines: dict[tuple[str, int], int] = {}
        self._names: dict[str, int] = {}
        self._places: dict[int, tuple[types.CodeType, dict[int, int]]] = {}
        self.heap = Heap()
        self.kernels: dict[str, Kernel] = {}
        self._counts: dict[tuple[Any, ...], int] = {}
        self._shared: dict[tuple[Any, ...], int] = {}
        self._asked: dict[tuple[Any, ...], tuple[int, str, int]] = {}  # first, by the latest launch that has
        self._due: dict[int, tuple[Program, Callable[[], object]]] = {}
        self.end_line: int = go.PrimLine(self.handle, "the end of its function")
        self._scratch_bytes: int = go.PrimScratchBytes(self.handle)

    def scratch_of(self, rank: int, slot: int) -> np.ndarray:
        """The scratch memory of a PE."""
        memory = self._scratch.get((rank, slot))
        if memory is None:
            memory = self._scratch[rank, slot] = np.zeros(self._scratch_bytes, np.uint8)
        return memory

    def line(self, code: types.CodeType, number: int) -> int:
        """The core's number for a line of a program."""
        place = (code.co_filename, number)  # hashing code takes long
        known = self._lines.get(place)
        if known is None:
            known = self._lines[place] = self.line_at(code.co_filename, number)
        return known

    def lines_in(self, code: types.CodeType) -> dict[int, int]:
        """The core's numbers for lines of a program, as far as they are known, by the instruction: to find a line takes
        longer."""
        known = self._places.get(id(code))
        if known is None:
            known = self._places[id(code)] = code, {}  # the code is kept: no other gets its id
        return known[1]

    def line_of(self, frame: types.FrameType) -> int:
        """The core's number for the line at which a frame of a program is."""
        lines = self.lines_in(frame.f_code)
        known = lines.get(frame.f_lasti)
        if known is None:
            known = lines[frame.f_lasti] = self.line(frame.f_code, frame.f_lineno)
        return known

    def name(self, text: str) -> int:
        """The core's number for an operation's name."""
        known = self._names.get(text)
        if known is None:
            known = self._names[text] = go.PrimLine(self.handle, text)
        return known

    def line_at(self, file: str, number: int) -> int:
        """The core's number for a line of a file."""
        return int(go.PrimLine(self.handle, f"{os.path.basename(file)}:{number}"))

    def count(self, kernel: Kernel, ranks: tuple[int, ...], rank: int) -> int:
        """Notes a rank's launch of a kernel among some ranks, and returns its number: 1, 2, …"""
        key = (kernel.place, ranks, rank)
        self._counts[key] = self._counts.get(key, 0) + 1
        return self._counts[key]

    def barrier(self, kernel: Kernel, ranks: tuple[int, ...], block: int) -> int:
        """The core's barrier of a kernel's programs of one number on some ranks."""
        name = f"of kernel {kernel.name}"
        return self._once((kernel.place, ranks, block), lambda: go.PrimBarrier(self.handle, name, ranks, "phase"))

    def workspace(self, key: tuple[Any, ...], name: str, nbytes: int) -> int:
        """A window on the ranks that are second in the key, after the kernel's place."""
        return self._once(key, lambda: go.PrimAllocate(self.handle, name, key[1], nbytes))

    def queue(self, key: tuple[Any, ...], name: str, ends: tuple[int, int], slots: int, nbytes: int) -> int:
        """A queue from one rank to another, for a key that begins with the kernel's place."""
        return self._once(key, lambda: go.PrimQueue(self.handle, name, *ends, slots, nbytes))

    def agree(self, launch: Launched, block: int, name: str, what: str) -> None:
        """Compares what a rank asks for with a name with what the first rank has, in the launch of the same number.

        Raises:
            MismatchError: they differ.
        """
        key = (launch.kernel.place, launch.ranks, block, name)
        number, first, rank = self._asked.get(key, (0, what, launch.index))
        if number < launch.number:
            self._asked[key] = launch.number, what, launch.index
        elif number == launch.number and first != what:
            raise MismatchError(
                f"memory {name!r} of kernel {launch.kernel.name!r}: rank {launch.index} asks for {what}, "
                f"and rank {rank} for {first}. All must ask for the same."
            )

    def restart(self, kernel: Kernel) -> None:
        """Forgets what launches of a kernel have counted and share, when some have failed and none runs."""
        tables: tuple[dict[tuple[Any, ...], Any], ...] = (self._counts, self._shared, self._asked)
        for known in tables:
            for key in [k for k in known if k[0] == kernel.place]:
                del known[key]

    def _once(self, key: tuple[Any, ...], make: Callable[[], int]) -> int:
        """Returns the object that was made for the first who asked with the key."""
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    def expect(self, number: int, program: Program, compute: Callable[[], object]) -> None:
        """Calls compute when an instruction that a program has issued is due."""
        self._due[number] = program, compute

    def take_turns(self) -> None:
        """Lets programs go on as long as some can without time passing."""
        before = runtime.running()
        try:
            while turn := go.PrimTurn(self.handle):
                if turn <= _FIRST_DUE:
                    self._compute(_FIRST_DUE - turn)
                elif turn != _AGAIN:
                    self._resume(self._program(turn))
        finally:
            runtime.switch_to(before)

    def abandon(self, why: str) -> None:
        """Ends all launches with an error. What ranks have counted and share begins anew."""
        go.PrimAbandon(self.handle, why)
        self.kill(lambda launch: True)
        self.launches.clear()
        for forgotten in (self._due, self._counts, self._shared, self._asked, self.heap.calls, self.heap.open):
            forgotten.clear()

    def kill(self, chosen: Callable[[Launched], bool]) -> None:
        """Ends the programs of some launches, but for the running one."""
        running = greenlet.getcurrent()
        for handle, program in tuple(self._programs.items()):
            if chosen(program.launch):
                del self._programs[handle]
                if program and program is not running:
                    program.parent = running
                    program.throw(Killed)

    def _program(self, handle: int) -> Program:
        program = self._programs.get(handle)
        if program is None:
            _, block, blocks, launch = go.PrimAbout(handle)
            program = self._programs[handle] = self._launch(launch).program(handle, block, blocks)
        return program

    def _launch(self, handle: int) -> Launched:
        """One that is known, or a part in a collective."""
        launch = self.launches.get(handle)
        if launch is None:
            from torchemu.language._collective import Member

            launch = self.launches[handle] = Member(self, handle)
        return launch

    def _resume(self, program: Program, *thrown: BaseException) -> None:
        runtime.switch_to(program.launch.inside)
        program.parent = greenlet.getcurrent()
        try:
            if thrown:
                program.throw(*thrown)
            else:
                program.switch()
        finally:
            if program.dead:
                self._programs.pop(program.handle, None)
                program.launch.look()

    def _compute(self, number: int) -> None:
        program, compute = self._due.pop(number)
        try:
            with np.errstate(all="ignore"):
                compute()
        except Exception as error:
            go.PrimComputed(self.handle)
            self._resume(program, error)
            return
        go.PrimComputed(self.handle)


def machine_of(world: runtime.World) -> Machine:
    """The machine of a World, made at its first use."""
    if world.programs is None:
        footprints.hide()
        world.programs = Machine(world)
    assert isinstance(world.programs, Machine)
    return world.programs
