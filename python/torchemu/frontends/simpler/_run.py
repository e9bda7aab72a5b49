"""One run of a Worker: its graph is built, then drained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from torchemu.dtypes import parse
from torchemu.errors import DeadlockError
from torchemu.frontends.numpy._tensor import zeros
from torchemu.frontends.simpler import _host_memory
from torchemu.frontends.simpler._allocations import Allocations
from torchemu.frontends.simpler._arguments import ContinuousTensor, DataType, TaskArgs
from torchemu.frontends.simpler._callables import ChipCallable
from torchemu.frontends.simpler._chips import Chips
from torchemu.frontends.simpler._graph import Graph, Task
from torchemu.frontends.simpler._kernels import Kernel

T = TypeVar("T")
PyFunction = Callable[[TaskArgs], object]


@dataclass(frozen=True)
class Equipment:
    """The equipment of a Worker for all its runs.

    Attributes:
        domains: those that are allocated.
        kernels, functions: what was registered, by the numbers that register gave.
        sub_workers: how many calls of Python functions can be one task.
        number_of: gives a ChipCallable's number; it is registered then.
    """

    chips: Chips
    domains: Allocations
    kernels: Mapping[int, Kernel]
    functions: Mapping[int, PyFunction]
    sub_workers: int
    number_of: Callable[[ChipCallable], int]


class Run:
    """The tasks of one call of Worker.run.

    Attributes:
        domains, memory: the Worker's.
    """

    def __init__(self, equipment: Equipment) -> None:
        self._equipment, self._chips = equipment, equipment.chips
        self.domains, self.memory = equipment.domains, equipment.chips.memory
        self._graph = Graph()
        self._functions: dict[Task, PyFunction] = {}
        self._kernels: dict[Task, Kernel] = {}
        self._kept: list[object] = []  # memory of the host's that tasks use
        self._submitted: dict[Task, None] = {}  # to the machine, and not ended
        self._count = 0

    # -- building

    def known_worker(self, worker: int) -> int:
        """The number of a worker that exists.

        Raises:
            ValueError: it does not.
        """
        if not 0 <= worker < len(self._chips):
            raise ValueError(f"worker {worker}: there are workers 0 to {len(self._chips) - 1}")
        return worker

    def number_of(self, target: ChipCallable) -> int:
        """The number of a ChipCallable, which need not have been registered."""
        return self._equipment.number_of(target)

    def add_chip_task(self, number: int, arguments: Sequence[TaskArgs], workers: Sequence[int]) -> None:
        """Adds a task for one worker, for several or, if none is given, for any.

        Raises:
            KeyError: no ChipCallable has the number.
        """
        kernel = self._registered(self._equipment.kernels, number, "ChipCallable")
        task = self._added(kernel.name, arguments, tuple(workers))
        self._kernels[task] = kernel

    def add_sub_task(self, number: int, arguments: Sequence[TaskArgs]) -> None:
        """Adds a task for as many SubWorkers as there are arguments."""
        function = self._registered(self._equipment.functions, number, "Python function")
        if not 0 < len(arguments) <= self._equipment.sub_workers:
            there = f"num_sub_workers={self._equipment.sub_workers}"
            raise ValueError(f"a task of {len(arguments)} calls at once; the Worker has {there}")
        task = self._added(function.__name__, arguments, ())
        self._functions[task] = function

    @staticmethod
    def _registered(known: Mapping[int, T], number: int, what: str) -> T:
        if number not in known:
            raise KeyError(f"no {what} is registered as {number}; those that are have {sorted(known)}")
        return known[number]

    def _added(self, name: str, arguments: Sequence[TaskArgs], workers: tuple[int, ...]) -> Task:
        for i, args in enumerate(arguments):
            for k in range(args.tensor_count()):
                self._keep(args.tensor(k), workers[i : i + 1])
        self._count += 1
        task = Task(f"{name} #{self._count}", tuple(arguments), workers)
        self._graph.add(task)
        return task

    def _keep(self, tensor: ContinuousTensor, workers: Sequence[int]) -> None:
        """Keeps the memory of a task's tensor until the end of the run.

        Raises:
            ValueError: it is not where the tensor says; or not in the worker's memory, if that is given.
        """
        if not tensor.child_memory and tensor.nbytes():
            self._kept.append(_host_memory.storage_at(tensor.data, tensor.nbytes(), "a task's tensor"))
        for worker in workers if tensor.child_memory else ():
            self.memory.check(worker, tensor.data, tensor.nbytes())

    def alloc(self, shape: Sequence[int], dtype: DataType) -> ContinuousTensor:
        """Acts as Orchestrator.alloc."""
        tensor = zeros(tuple(shape), dtype=parse(DataType(dtype).name.lower()), device="cpu")
        self._kept.append(tensor)
        return ContinuousTensor.make(tensor.data_ptr(), shape, dtype)

    # -- draining

    def drain(self) -> None:
        """Runs all tasks.

        Raises:
            DeadlockError: they wait for each other. Exception: what the first that failed raised.
        """
        while self._graph.tasks:
            if not self._start_ready():
                self._step()
        self._chips.finish()

    def _start_ready(self) -> bool:
        """Starts the tasks that need not wait for others; returns whether some have ended by that already."""
        ended = []
        for task in self._graph.tasks:
            if task in self._submitted or not task.is_ready:
                continue
            if task in self._functions:
                self._call(task)
                ended.append(task)
            elif task.workers or self._found_worker(task):
                self._chips.submit(task, self._kernels[task])
                self._submitted[task] = None
        self._graph.end(ended)
        return bool(ended)

    def _call(self, task: Task) -> None:
        """Runs a task of the host's, which takes no simulated time."""
        try:
            for args in task.arguments:
                self._functions[task](args)
        except Exception as error:
            error.add_note(f"in task {task} on a SubWorker")
            raise

    def _found_worker(self, task: Task) -> bool:
        """Gives a task for any worker the first that has nothing to do."""
        busy = {worker for other in self._submitted for worker in other.workers}
        idle = next((worker for worker in range(len(self._chips)) if worker not in busy), None)
        if idle is not None:
            task.workers = (idle,)
        return idle is not None

    def _step(self) -> None:
        try:
            changed = self._chips.step()
        except DeadlockError as deadlock:
            raise self._explained(deadlock) from None
        if changed:
            ended = [task for task in self._submitted if self._chips.ended(task)]
            for task in ended:
                del self._submitted[task]
            self._graph.end(ended)

    def _explained(self, deadlock: DeadlockError) -> DeadlockError:
        """The core's report, with the tasks that it has not been given."""
        report = "\n".join([deadlock.report, *self._graph.waiting(self._chips.ranks)])
        return DeadlockError(report, self._chips.lost() or deadlock.cause)
