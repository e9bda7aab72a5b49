"""The chips of a Worker: a machine of the core, with one rank for each SIP, and the kernels that Python runs on it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from torchemu import dtypes, runtime
from torchemu.bridge.binding import go
from torchemu.frontends.numpy import _streams
from torchemu.frontends.pto._core import Core
from torchemu.frontends.pto._memory import Buffer, TensorArg
from torchemu.frontends.pto._program import Program
from torchemu.frontends.simpler._arguments import ContinuousTensor
from torchemu.frontends.simpler._graph import Task
from torchemu.frontends.simpler._kernels import Kernel
from torchemu.frontends.simpler._memory import ChipMemory, Seat
from torchemu.language.inside import Inside
from torchemu.runtime import fabric, waiting

_FIRST_DUE = -2
"""Turns from here on down are instructions', by number."""


class Chips:
    """They have memory and run tasks. Chip i is the SIP device_ids[i] of the run's fabric.

    Args:
        device_ids: SIPs. If they are more than a preset has, that is made larger; or, where something is recorded or
            faults are set, the chips are on a fabric of their own.

    Attributes:
        machine: the handle of the machine.
        ranks: the chips' ranks there, which are the numbers of their SIPs.
        memory: theirs.
    """

    def __init__(self, device_ids: Sequence[int]) -> None:
        self.ranks = tuple(device_ids)
        count = max(device_ids) + 1
        world = runtime.current().world
        strict = world.strictness
        options = count, strict.check, strict.reorder is not None, strict.reorder or 0
        self._shares = _has_room(world, count)
        if self._shares:
            self.machine: int = go.PrimOpenOn(world.handle, *options)
        else:
            with fabric.fitting(world.source, 1, count) as topology:
                self.machine = go.PrimOpen(topology, *options)
        self.memory = ChipMemory(self.machine, self.ranks)
        self._lines: dict[str, int] = {}
        self._begin: dict[tuple[int, int], tuple[str, Callable[[], None]]] = {}  # kernels in Python, by job and rank
        self._programs: dict[int, Program] = {}
        self._cores = {rank: Core(self.machine, rank, self.memory.is_context) for rank in self.ranks}

    def __len__(self) -> int:
        return len(self.ranks)

    def close(self) -> None:
        """Frees the machine."""
        go.PrimClose(self.machine)

    def now(self) -> int:
        """The simulated time, in picoseconds."""
        return int(go.PrimNow(self.machine))

    def enter(self) -> None:
        """Begins a run: when the host's program has got there, and all that it has issued has ended."""
        if self._shares:
            _streams.synchronize()
            waiting.sleep(0)

    def leave(self, elapsed: int) -> None:
        """Lets the host's time pass that a run has taken, in picoseconds. On the same fabric it has."""
        if not self._shares:
            waiting.sleep(elapsed)

    def submit(self, task: Task, kernel: Kernel) -> None:
        """Gives a task whose time has come to the machine."""
        task.job = kernel.submit(_Place(self, task))

    def begin(self, place: _Place, entry: Callable[..., None], arguments: Sequence[Any]) -> int:
        """Submits a kernel in Python, with what it is called with on each of its ranks; returns the job."""
        job: int = go.PrimSubmit(self.machine, place.name, place.ranks, 1, False, place.after)
        for rank, given in zip(place.ranks, arguments, strict=True):
            self._begin[job, rank] = (f'"{place.name}" on rank {rank}', functools.partial(entry, given))
        return job

    def step(self) -> bool:
        """Lets one thing happen; returns whether tasks may have ended by it.

        Raises:
            DeadlockError: nothing can happen. Exception: what a kernel raised.
        """
        turn = go.PrimNext(self.machine)
        if turn <= _FIRST_DUE:
            self._compute(_FIRST_DUE - turn)
            return False
        return self._resume(turn) if turn > 0 else True

    def _compute(self, number: int) -> None:
        """Makes the result of an instruction of a compiled kernel."""
        core = next(core for core in self._cores.values() if number in core.due)
        core.due.pop(number)()
        go.PrimComputed(self.machine)

    def _resume(self, handle: int) -> bool:
        program = self._programs.get(handle)
        if program is None:
            program = self._programs[handle] = self._begun(handle)
        host = runtime.current()
        runtime.switch_to(Inside(host, program.name, "the instructions of its chip (torchemu.pto)"))
        try:
            program.switch()
        finally:
            runtime.switch_to(host)
        return program.dead and self._ended(program)

    def _begun(self, handle: int) -> Program:
        rank, _, _, job = go.PrimAbout(handle)
        name, body = self._begin.pop((job, rank))
        return Program(name, self.machine, handle, self._lines, body, self._cores[rank])

    def _ended(self, program: Program) -> bool:
        """Notes that a kernel has ended."""
        del self._programs[program.handle]
        if program.error is not None:
            program.error.add_note(f"in kernel {program.name}")
            raise program.error
        go.PrimEnd(program.handle, "")
        return True

    def ended(self, task: Task) -> bool:
        """Reports whether a task that the machine has been given has ended."""
        return bool(go.PrimEnded(task.job))

    def lost(self) -> str:
        """The fault that keeps messages between chips from arriving; "" for none."""
        return str(go.PrimLost(self.machine, self.ranks))

    def finish(self) -> None:
        """Lets what is under way arrive, when all tasks have ended."""
        while go.PrimNext(self.machine):
            pass

    def settle(self, failed: bool) -> None:
        """Ends a run. The host's tensors are no longer the chips'; after a failure nothing more can be run.

        Raises:
            RaceError: the checker has found something.
        """
        for program in self._programs.values():
            if not program.dead:
                program.throw()
        self._programs.clear()
        self._begin.clear()
        for core in self._cores.values():
            core.due.clear()
        try:
            go.PrimSettle(self.machine, failed)
        finally:
            self.memory.detach()


def _has_room(world: runtime.World, count: int) -> bool:
    """Reports whether a World has so many SIPs, or can be given them."""
    if world.sips >= count:
        return True
    _streams.synchronize()  # or operations are under way
    with fabric.fitting(world.source, 1, count) as larger:
        try:
            world.resize(larger)
        except RuntimeError as error:
            warnings.warn(
                f"chips 0 to {count - 1} do not fit topology {world.topology!r}, which has {world.sips} SIPs and "
                f"cannot get more, for {error}: they are on a fabric of their own, which neither traces nor faults "
                f"reach; choose a --topology with at least {count}",
                stacklevel=4,
            )
            return False
    return True


class _Place:
    """Acts as _kernels.Place."""

    def __init__(self, chips: Chips, task: Task) -> None:
        self._chips = chips
        self.ranks = tuple(chips.ranks[worker] for worker in task.workers)
        self.machine, self.name, self.arguments = chips.machine, task.name, task.arguments
        self.after = [before.job for before in task.after if before.job]

    def address(self, i: int, tensor: int) -> int:
        """Returns where a tensor of the i-th rank is for its kernel."""
        return self._chips.memory.address(self.ranks[i], self.arguments[i].tensor(tensor))

    def seat(self, context: int) -> Seat:
        """The seat in a domain whose CommContext is at an address."""
        return self._chips.memory.seat(context)

    def run(self, entry: Callable[..., None]) -> int:
        """Submits a kernel in Python. Its arguments are made first: it is the host that waits for tensors."""
        return self._chips.begin(self, entry, [self._given(i) for i in range(len(self.ranks))])

    def _given(self, i: int) -> list[TensorArg | int]:
        """Returns the arguments for the kernel of the i-th rank."""
        args = self.arguments[i]
        tensors = [self._tensor(self.address(i, k), args.tensor(k)) for k in range(args.tensor_count())]
        return [*tensors, *(args.scalar(k) for k in range(args.scalar_count()))]

    @staticmethod
    def _tensor(address: int, t: ContinuousTensor) -> TensorArg:
        return TensorArg(Buffer(address, t.nbytes()), t.shapes, dtypes.parse(t.dtype.name.lower()))
