"""simpler.orchestrator: what the function that Worker.run calls builds its graph of tasks with."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from torchemu.frontends.simpler import _host_memory
from torchemu.frontends.simpler._arguments import CallConfig, ContinuousTensor, DataType, TaskArgs
from torchemu.frontends.simpler._callables import ChipCallable
from torchemu.frontends.simpler._domains import CommBufferSpec, CommDomainHandle, DomainBuffer

if TYPE_CHECKING:
    from torchemu.frontends.simpler._run import Run


class Orchestrator:
    """Good for one run, while its function is called. Nothing that is submitted begins before the function returns.

    Raises:
        RuntimeError: of any method: the function has returned.
    """

    def __init__(self, run: Run) -> None:
        self._open_run: Run | None = run

    @property
    def _run(self) -> Run:
        if self._open_run is None:
            raise RuntimeError("an Orchestrator is good only inside the function that Worker.run called with it")
        return self._open_run

    def close(self) -> None:
        """Ends it: its function has returned."""
        self._open_run = None

    # -- tasks

    def submit_next_level(
        self, callable_id: int | ChipCallable, args: TaskArgs, config: CallConfig | None = None, *, worker: int = -1
    ) -> None:
        """Adds a task for a chip.

        Args:
            callable_id: what register gave for a ChipCallable; or that itself, as in earlier versions.
            args: what it is called with; their tags say which tasks it follows.
            worker: the chip; -1 for the first that is free.

        Raises:
            TypeError: callable_id or args are something else.
            KeyError: nothing was registered as callable_id.
            ValueError: there is no such worker.
        """
        workers = () if worker == -1 else (self._run.known_worker(worker),)
        self._run.add_chip_task(self._chip_task(callable_id), [_checked(args)], workers)

    def submit_next_level_group(
        self,
        callable_id: int | ChipCallable,
        args_list: Sequence[TaskArgs],
        config: CallConfig | None = None,
        *,
        workers: Sequence[int],
    ) -> None:
        """Adds one task for several chips, which starts on all of them at once: each that is free earlier waits.

        Raises:
            ValueError: there is not one args for each worker, or workers names one twice or one that does not exist.
        """
        numbers = tuple(self._run.known_worker(w) for w in workers)
        if not numbers or len(args_list) != len(numbers) or len(set(numbers)) != len(numbers):
            raise ValueError(
                f"a group of {len(args_list)} args for workers {list(workers)}: want different ones, and args for each"
            )
        self._run.add_chip_task(self._chip_task(callable_id), [_checked(args) for args in args_list], numbers)

    def _chip_task(self, callable_id: int | ChipCallable) -> int:
        """The number of what a task for chips is."""
        run = self._run
        return run.number_of(callable_id) if isinstance(callable_id, ChipCallable) else operator.index(callable_id)

    def submit_sub(self, callable_id: int, args: TaskArgs | None = None) -> None:
        """Adds a call of a registered Python function, with args, on a SubWorker of the host.

        Raises:
            ValueError: the Worker has no SubWorkers.
        """
        self.submit_sub_group(callable_id, [args if args is not None else TaskArgs()])

    def submit_sub_group(self, callable_id: int, args_list: Sequence[TaskArgs]) -> None:
        """Adds calls of a registered Python function, on as many SubWorkers, as one task.

        Raises:
            ValueError: there are no args, or more than SubWorkers.
        """
        self._run.add_sub_task(operator.index(callable_id), [_checked(args) for args in args_list])

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """A with block in which a program says how long it needs what it allocates. Here that is until the run ends."""
        yield

    # -- memory

    def allocate_domain(
        self, *, name: str, workers: Sequence[int], window_size: int, buffers: Sequence[CommBufferSpec] = ()
    ) -> CommDomainHandle:
        """A communication domain: a zeroed window on each of some workers, whose order is that of the domain.

        Args:
            window_size: bytes of each window.
            buffers: named parts of it.

        Raises:
            ValueError: the arguments do not fit together, see _domains.check; or a domain of this name is live.
        """
        return self._run.domains.allocate(name, [operator.index(w) for w in workers], window_size, buffers)

    def release_domain(self, handle: CommDomainHandle) -> None:
        """Says that no further tasks will use a domain; see CommDomainHandle.release."""
        handle.release()

    def alloc(self, shape: Sequence[int], dtype: DataType) -> ContinuousTensor:
        """A tensor in the host's memory, for tasks to hand on to each other. It is there until the run ends."""
        return self._run.alloc(shape, dtype)

    def malloc(self, worker_id: int, size: int) -> int:
        """The address of so many bytes in a chip's memory, until free or the Worker's close."""
        return self._run.memory.malloc(self._run.known_worker(worker_id), size)

    def free(self, worker_id: int, ptr: int) -> None:
        """Frees what malloc gave, at once.

        Raises:
            ValueError: it did not, for this worker, or it has been freed.
        """
        self._run.memory.free(self._run.known_worker(worker_id), ptr)

    def copy_to(self, worker_id: Any, dst: Any, src: int = 0, size: int = 0) -> None:
        """Copies bytes of the host's to a chip's memory, before any task of the run begins: so many from an address to
        another one, or by ``copy_to(buffer, tensor)`` a tensor's to one of a domain's buffers.

        Raises:
            ValueError: src is not in a tensor's memory, or dst not in the chip's; or the tensor is longer than the
                buffer.
        """
        if isinstance(worker_id, DomainBuffer):
            worker_id, dst, src, size = worker_id.worker, worker_id.place(dst.nbytes()), dst.data, dst.nbytes()
        self._copy(self._run.memory.write, worker_id, dst, src, size)

    def copy_from(self, worker_id: Any, dst: Any, src: int = 0, size: int = 0) -> None:
        """Copies bytes of a chip's memory to the host's, before any task of the run begins. As copy_to; or by
        ``copy_from(tensor, buffer)``."""
        if isinstance(dst, DomainBuffer):
            tensor, buffer = worker_id, dst
            worker_id, dst, src, size = buffer.worker, tensor.data, buffer.place(tensor.nbytes()), tensor.nbytes()
        self._copy(self._run.memory.read, worker_id, src, dst, size)

    def _copy(
        self, copy: Callable[[int, int, np.ndarray], None], worker: int, there: int, here: int, size: int
    ) -> None:
        copy(self._run.known_worker(worker), there, _host_memory.bytes_at(here, size, "a copy"))


def _checked(args: Any) -> TaskArgs:
    if not isinstance(args, TaskArgs):
        raise TypeError(f"a task is called with TaskArgs, not {type(args).__name__}")
    return args.copied()
