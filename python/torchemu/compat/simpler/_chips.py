"""The chips of a Worker: a machine of the core, with one rank for each SIP, and the programs that Python runs on it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from torchemu import _runtime, dtypes
from torchemu._binding import go
from torchemu.compat.simpler import _host_memory
from torchemu.compat.simpler._arguments import ContinuousTensor, TaskArgs
from torchemu.compat.simpler._graph import Task
from torchemu.compat.simpler._kernels import Kernel
from torchemu.pto._memory import CONTEXT_BYTES, Buffer, TensorArg, packed_context
from torchemu.pto._program import Program
from torchemu.run import fabric


@dataclass(frozen=True)
class Seat:
    """A place in a domain.

    Attributes:
        ranks: the members' ranks, in the domain's order.
        place: which of them it is.
        base, nbytes: where its window is, and how long.
    """

    ranks: tuple[int, ...]
    place: int
    base: int
    nbytes: int


@dataclass(frozen=True)
class Memory:
    """What a domain has in the chips' memory.

    Attributes:
        windows: the numbers of its windows.
        bases: where each member's window is.
        contexts: where each member's CommContext is.
    """

    windows: tuple[int, ...]
    bases: tuple[int, ...]
    contexts: tuple[int, ...]


class Chips:
    """They have memory and run tasks. Chip i is the SIP device_ids[i] of the run's topology.

    Args:
        device_ids: SIPs. If they are more than a preset has, the chips are on one of the same kind that is larger.

    Attributes:
        machine: the handle of the machine.
    """

    def __init__(self, device_ids: Sequence[int]) -> None:
        self._ranks = tuple(device_ids)
        count = max(device_ids) + 1
        world = _runtime.current().world
        strict = world.strictness
        with fabric.fitting(world.source, 1, count) as topology:
            self.machine: int = go.PrimOpen(
                topology, count, strict.check, strict.reorder is not None, strict.reorder or 0
            )
        self._lines: dict[str, int] = {}
        self._begin: dict[tuple[int, int], tuple[str, Callable[[], None]]] = {}  # kernels in Python, by job and rank
        self._programs: dict[int, Program] = {}
        self._reaches: dict[int, list[tuple[int, int, int]]] = {}  # rank, begin and end of a window's parts
        self._domains: dict[int, Seat] = {}  # by the address of the CommContext
        self._attached: dict[tuple[int, int, int], int] = {}  # windows, by rank, address and size

    def __len__(self) -> int:
        return len(self._ranks)

    def close(self) -> None:
        """Frees the machine."""
        go.PrimClose(self.machine)

    def now(self) -> int:
        """The simulated time, in picoseconds."""
        return int(go.PrimNow(self.machine))

    # -- memory

    def allocate(self, name: str, workers: Sequence[int], nbytes: int) -> tuple[int, list[int]]:
        """A zeroed window: its number, and where it is on each of the chips."""
        ranks = [self._ranks[worker] for worker in workers]
        window = go.PrimAllocate(self.machine, name, ",".join(map(str, ranks)), nbytes)
        bases = [go.PrimAddress(window, rank, 0) for rank in ranks]
        self._reaches[window] = [(rank, base, base + nbytes) for rank, base in zip(ranks, bases, strict=True)]
        return window, bases

    def free_window(self, window: int) -> None:
        """Frees a window."""
        go.PrimFree(window)
        del self._reaches[window]

    def write(self, worker: int, address: int, data: np.ndarray) -> None:
        """Copies bytes to a chip's memory.

        Raises:
            ValueError: the address is not in its memory.
        """
        self.check(worker, address, data.nbytes)
        go.PrimWrite(self.machine, address, data.__array_interface__["data"][0], data.nbytes)

    def read(self, worker: int, address: int, data: np.ndarray) -> None:
        """Copies bytes from a chip's memory, as write."""
        self.check(worker, address, data.nbytes)
        go.PrimRead(self.machine, address, data.__array_interface__["data"][0], data.nbytes)

    def check(self, worker: int, address: int, nbytes: int) -> None:
        """Checks that bytes are in what has been allocated on a chip."""
        rank = self._ranks[worker]
        for reaches in self._reaches.values():
            if any(of == rank and lo <= address and address + nbytes <= hi for of, lo, hi in reaches):
                return
        where = f"one window, or malloc's memory, of worker {worker}"
        raise ValueError(f"{nbytes} bytes at {address:#x} are not in {where}")

    def domain(self, name: str, workers: Sequence[int], nbytes: int) -> Memory:
        """The windows of a domain, with a CommContext for each member."""
        window, bases = self.allocate(name, workers, nbytes)
        about, contexts = self.allocate(f"CommContext of {name}", workers, CONTEXT_BYTES)
        ranks = [self._ranks[worker] for worker in workers]
        for place, context in enumerate(contexts):
            self.write(workers[place], context, packed_context(place, bases, nbytes))
            self._domains[context] = Seat(tuple(ranks), place, bases[place], nbytes)
        return Memory((window, about), tuple(bases), tuple(contexts))

    def free(self, memory: Memory) -> None:
        """Frees a domain's memory."""
        for window in memory.windows:
            self.free_window(window)
        for context in memory.contexts:
            del self._domains[context]

    def seat(self, context: int) -> Seat:
        """The seat whose CommContext is at an address.

        Raises:
            ValueError: there is none.
        """
        if context not in self._domains:
            raise ValueError(f"device_ctx {context:#x} is that of no domain that is allocated")
        return self._domains[context]

    def attach(self, rank: int, tensor: ContinuousTensor) -> int:
        """The address that a host's tensor has for the kernels of a chip: both see the same bytes."""
        key = (rank, tensor.data, tensor.nbytes())
        if not tensor.nbytes():
            return 0
        if key not in self._attached:
            _host_memory.storage_at(tensor.data, tensor.nbytes(), "a task's tensor")  # waits for what is under way
            self._attached[key] = go.PrimAttach(self.machine, f"host tensor {tensor.shapes}", rank, *key[1:])
        return int(go.PrimAddress(self._attached[key], rank, 0))

    # -- tasks

    def submit(self, task: Task, kernel: Kernel) -> None:
        """Gives a task whose time has come to the machine."""
        task.job = kernel.submit(_Place(self, task, tuple(self._ranks[w] for w in task.workers)))

    def run(self, place: _Place, entry: Callable[..., None]) -> int:
        """Submits a kernel in Python."""
        arguments = [
            place.kernel_arguments(i) for i in range(len(place.ranks))
        ]  # now: it is the host that waits for tensors
        ranks = ",".join(map(str, place.ranks))
        job: int = go.PrimSubmit(self.machine, place.name, ranks, 1, False, place.after)
        for rank, given in zip(place.ranks, arguments, strict=True):
            self._begin[job, rank] = (
                f'"{place.name}" on worker {self._ranks.index(rank)}',
                functools.partial(entry, given),
            )
        return job

    def step(self) -> bool:
        """Lets one thing happen; returns whether tasks may have ended by it.

        Raises:
            DeadlockError: nothing can happen. Exception: what a kernel raised.
        """
        turn = go.PrimNext(self.machine)
        return self._resume(turn) if turn > 0 else True

    def _resume(self, handle: int) -> bool:
        program = self._programs.get(handle)
        if program is None:
            program = self._programs[handle] = self._begun(handle)
        host = _runtime.current()
        host.in_kernel = True
        try:
            program.switch()
        finally:
            host.in_kernel = False
        if not program.dead:
            return False
        del self._programs[handle]
        if program.error is not None:
            program.error.add_note(f"in kernel {program.name}")
            raise program.error
        go.PrimEnd(handle, "")
        return True

    def _begun(self, handle: int) -> Program:
        rank, _, _, job = map(int, go.PrimAbout(handle).split())
        name, body = self._begin.pop((job, rank))
        return Program(name, self.machine, handle, self._lines, body)

    def ended(self, task: Task) -> bool:
        """Whether a task that the machine has been given has ended."""
        return bool(go.PrimEnded(task.job))

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
            program.throw()
        self._programs.clear()
        self._begin.clear()
        try:
            go.PrimSettle(self.machine, failed)
        finally:
            for window in self._attached.values():
                go.PrimFree(window)
            self._attached.clear()


class _Place:
    """As _kernels.Place."""

    def __init__(self, chips: Chips, task: Task, ranks: tuple[int, ...]) -> None:
        self._chips, self.ranks = chips, ranks
        self.machine, self.name, self.arguments = chips.machine, task.name, task.arguments
        self.after = ",".join(str(before.job) for before in task.after if before.job)

    def address(self, i: int, tensor: int) -> int:
        """Where a tensor of the i-th rank is for its kernel."""
        t = self.arguments[i].tensor(tensor)
        return t.data if t.child_memory else self._chips.attach(self.ranks[i], t)

    def seat(self, context: int) -> Seat:
        """The seat in a domain whose CommContext is at an address."""
        return self._chips.seat(context)

    def run(self, entry: Callable[..., None]) -> int:
        """Submits a kernel in Python."""
        return self._chips.run(self, entry)

    def kernel_arguments(self, i: int) -> list[TensorArg | int]:
        """What the kernel of the i-th rank gets."""
        args = self.arguments[i]
        tensors = [self._tensor(i, k, args) for k in range(args.tensor_count())]
        return [*tensors, *(args.scalar(k) for k in range(args.scalar_count()))]

    def _tensor(self, i: int, k: int, args: TaskArgs) -> TensorArg:
        t = args.tensor(k)
        return TensorArg(Buffer(self.address(i, k), t.nbytes()), t.shapes, dtypes.parse(t.dtype.name.lower()))
