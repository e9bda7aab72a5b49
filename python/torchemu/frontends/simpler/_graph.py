"""The graph of a run's tasks: which come before which follows from what they do to tensors.

A task that reads a tensor follows the last one before it that made it. Tensors are told apart by the address of their
first element. Nothing else orders tasks: not what they write to each other's windows, nor scalars, nor a second write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from torchemu.frontends.simpler._arguments import ContinuousTensor, TaskArgs

_LINES = 16
"""So many tasks that wait are spelled out in a report."""

_BEFORE = 3
"""So many tasks are spelled out that one follows."""


@dataclass(eq=False)
class Task:
    """A node: a kernel on a worker or on a group of workers, or Python functions on the host.

    Attributes:
        name: for reports.
        arguments: of each worker of a group; else of one.
        workers: the workers that run it; none says any. SubWorkers have no numbers.
        after: the tasks that it follows.
        job: its number in the machine, once it has been given to it.
    """

    name: str
    arguments: tuple[TaskArgs, ...]
    workers: tuple[int, ...] = ()
    after: tuple[Task, ...] = ()
    job: int = 0
    ended: bool = False

    @property
    def is_ready(self) -> bool:
        """Reports whether all that it follows has ended."""
        return all(task.ended for task in self.after)

    def waiting(self, ranks: Sequence[int]) -> str:
        """A line that says what it waits for."""
        before = " and ".join(_cut([str(task) for task in self.after if not task.ended], _BEFORE))
        return f"  task {self}{_on([ranks[worker] for worker in self.workers])} follows {before}"

    def __str__(self) -> str:
        return f'"{self.name}"'


@dataclass
class Graph:
    """The tasks of a run that have not ended, in the order of submission."""

    tasks: list[Task] = field(default_factory=list)
    _makers: dict[tuple[bool, int], Task] = field(default_factory=dict)

    def add(self, task: Task) -> None:
        """Adds a task, which follows those that made what it reads."""
        task.after = tuple(dict.fromkeys(self._read(task.arguments)))
        for key in _keys(task.arguments, lambda tag: tag.makes):
            self._makers[key] = task
        self.tasks.append(task)

    def _read(self, arguments: Sequence[TaskArgs]) -> Iterator[Task]:
        for key in _keys(arguments, lambda tag: tag.follows):
            if key in self._makers:
                yield self._makers[key]

    def end(self, ended: Iterable[Task]) -> None:
        """Notes that tasks have ended."""
        for task in ended:
            task.ended = True
        self.tasks = [task for task in self.tasks if not task.ended]

    def waiting(self, ranks: Sequence[int]) -> list[str]:
        """The lines of a report for tasks that have not been started, since those that they follow have not ended.
        Workers are called by their ranks. Where there are many the first and the last tell where to look."""
        return _cut([task.waiting(ranks) for task in self.tasks if not task.is_ready], _LINES, "  ")


def _cut(texts: list[str], shown: int, margin: str = "") -> list[str]:
    """The texts, of which the middle is only counted where there are more than are shown."""
    skipped = len(texts) - shown
    if skipped <= 0:
        return texts
    head = (shown + 1) // 2
    return [*texts[:head], f"{margin}… and {skipped} more …", *texts[head + skipped :]]


def _keys(arguments: Sequence[TaskArgs], wanted: Callable[..., bool]) -> Iterator[tuple[bool, int]]:
    """Returns the addresses by which tensors with wanted tags are known. One without elements has none."""
    for args in arguments:
        for i in range(args.tensor_count()):
            if wanted(args.tag(i)) and args.tensor(i).data:
                yield _key(args.tensor(i))


def _key(tensor: ContinuousTensor) -> tuple[bool, int]:
    """The address, and whether it is the host's: the two kinds of addresses have nothing to do with each other."""
    return tensor.child_memory, tensor.data


def _on(workers: Sequence[int]) -> str:
    if len(workers) == 1:
        return f" for worker {workers[0]}"
    return f" for workers {list(workers)}" if workers else ""
