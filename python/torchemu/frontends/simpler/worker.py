"""simpler.worker: the host's view of its chips."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torchemu.errors import RaceError
from torchemu.frontends.simpler import _orchestrations
from torchemu.frontends.simpler._allocations import Allocations
from torchemu.frontends.simpler._arguments import CallConfig, TaskArgs
from torchemu.frontends.simpler._bootstrap import Bootstrapped, ChipBootstrapConfig, ChipContext
from torchemu.frontends.simpler._bootstrap import check as check_bootstrap
from torchemu.frontends.simpler._callables import ChipCallable
from torchemu.frontends.simpler._chips import Chips
from torchemu.frontends.simpler._domains import CommDomainHandle
from torchemu.frontends.simpler._kernels import Kernel
from torchemu.frontends.simpler._run import Equipment, PyFunction, Run
from torchemu.frontends.simpler.orchestrator import Orchestrator

PLATFORMS = ("a2a3", "a2a3sim", "a5", "a5sim")
RUNTIMES = ("aicpu_build_graph", "host_build_graph", "tensormap_and_ringbuffer")
_HOST, _CHIP = 3, 2  # levels: one host with its chips, and one chip
_PS_PER_US = 10**6


def check_one_of(what: str, given: object, known: Sequence[str]) -> None:
    """Checks that a name is known.

    Raises:
        ValueError: it is not.
    """
    if given not in known:
        raise ValueError(f"{what} {given!r}: want one of {', '.join(known)}")


@dataclass(frozen=True)
class RunTiming:
    """The duration of a run in simulated microseconds.

    Attributes:
        host_wall_us: from its first task's start to the last one's end.
        device_wall_us: 0, as for all runs over several chips.
    """

    host_wall_us: float
    device_wall_us: float


class Worker:
    """A host with its chips. Calls come in the order register, init, run, …, run, close.

    Args:
        level: 3, one host with several chips; or 2, one chip, whose run is called with what register returned.
        platform: one of PLATFORMS, which are all the same simulated chips.
        runtime: one of RUNTIMES, which make no difference.
        device_ids: the SIPs that are the chips 0, 1, …
        device_id: the SIP of a Worker of level 2.
        num_sub_workers: how many Python functions can be one task.
        chip_bootstrap_configs: windows that the chips have from init to close, one for each chip.
        build: without effect.

    Raises:
        ValueError: an argument is not one of these.
    """

    def __init__(
        self,
        level: int = _HOST,
        *,
        platform: str = "a2a3sim",
        runtime: str = "tensormap_and_ringbuffer",
        device_ids: Sequence[int] | None = None,
        device_id: int = 0,
        num_sub_workers: int = 0,
        chip_bootstrap_configs: Sequence[ChipBootstrapConfig] | None = None,
        build: bool = False,
    ) -> None:
        if level not in (_CHIP, _HOST):
            raise ValueError(
                f"level {level}: the stand-in for simpler has level 3, one host with its chips, and level 2"
            )
        self._level = level
        check_one_of("platform", platform, PLATFORMS)
        check_one_of("runtime", runtime, RUNTIMES)
        self._device_ids = [operator.index(d) for d in ((device_id,) if device_ids is None else device_ids)]
        if not self._device_ids or min(self._device_ids) < 0 or len(set(self._device_ids)) != len(self._device_ids):
            raise ValueError(f"device_ids {self._device_ids}: want different numbers of SIPs, from 0 on")
        if level == _CHIP and len(self._device_ids) > 1:
            raise ValueError(f"device_ids {self._device_ids}: a Worker of level 2 has one chip")
        if num_sub_workers < 0:
            raise ValueError(f"num_sub_workers {num_sub_workers} is negative")
        self._configs = list(chip_bootstrap_configs or ())
        if self._configs:
            check_bootstrap(self._configs, len(self._device_ids))
        self._sub_workers = num_sub_workers
        self._kernels: dict[int, Kernel] = {}
        self._functions: dict[int, PyFunction] = {}
        self._numbers: dict[ChipCallable, int] = {}
        self._equipment: Equipment | None = None
        self._bootstrapped: Bootstrapped | None = None
        self._is_running = self._has_failed = False

    def register(self, target: ChipCallable | PyFunction) -> int:
        """Makes something known that tasks can be; returns the number that submit knows it by.

        Raises:
            TypeError: it is neither a ChipCallable nor callable.
            ValueError: its kernels are not such that KernelCompiler made; or they are several, and there is no
                orchestration in Python that says what to do with them.
            RuntimeError: the file with that has no function of its name.
        """
        number = len(self._kernels) + len(self._functions)
        if isinstance(target, ChipCallable):
            self._kernels[number] = _orchestrations.kernel_of(target)
            self._numbers.setdefault(target, number)
        elif callable(target):
            self._functions[number] = target
        else:
            raise TypeError(f"register wants a ChipCallable or a Python function, not {type(target).__name__}")
        return number

    def init(self) -> None:
        """Takes the chips.

        Raises:
            RuntimeError: it has them already.
            ValueError: the topology of the run is a file's, and has not as many SIPs.
        """
        if self._equipment is not None:
            raise RuntimeError("init has been called already")
        chips = Chips(self._device_ids)
        self._equipment = Equipment(
            chips, Allocations(chips.memory, len(chips)), self._kernels, self._functions, self._sub_workers, self._known
        )
        if self._configs:
            self._bootstrapped = Bootstrapped(self._configs, chips.memory, self._device_ids)

    def _known(self, target: ChipCallable) -> int:
        """The number of a callable that drivers of earlier versions submit as it is."""
        return self._numbers[target] if target in self._numbers else self.register(target)

    @property
    def chip_contexts(self) -> list[ChipContext]:
        """The windows of chip_bootstrap_configs, by chip.

        Raises:
            RuntimeError: init has not been called.
        """
        if self._equipment is None:
            raise RuntimeError("chip_contexts: the windows are there from init() on")
        return [] if self._bootstrapped is None else list(self._bootstrapped.contexts)

    @property
    def live_domains(self) -> dict[str, CommDomainHandle]:
        """The domains that have not been released, by name."""
        return {} if self._equipment is None else dict(self._equipment.domains.live)

    def run(
        self,
        orch_fn: Callable[[Orchestrator, Any, CallConfig], object] | int | ChipCallable,
        args: Any = None,
        config: CallConfig | None = None,
    ) -> RunTiming:
        """Calls ``orch_fn(orch, args, config)``, which submits tasks; then runs these and frees the domains.

        A Worker of level 2 runs one task, ``run(callable_id, args)``.

        Raises:
            TypeError: the first is no function, and the Worker is of level 3.
            RuntimeError: init has not been called, or close has; a run is going on; or an earlier one has failed.
            DeadlockError: tasks wait for each other: the text says which kernel waits for what.
            RaceError: kernels accessed memory in no order.
            Exception: what orch_fn raised, or the first task that failed.
        """
        equipment = self._ready()
        build = self._of_one(orch_fn) if self._level == _CHIP else orch_fn
        if not callable(build):
            raise TypeError(f"run wants a function of (orch, args, config), not {type(orch_fn).__name__}")
        equipment.chips.enter()
        begun = equipment.chips.now()
        self._is_running = True
        error = self._error(Run(equipment), build, args, config if config is not None else CallConfig())
        self._is_running = False
        elapsed = equipment.chips.now() - begun
        error = self._cleaned(equipment, error)
        if error is None and self._bootstrapped is not None:
            self._bootstrapped.store()
        if error is None or isinstance(error, Exception):
            equipment.chips.leave(elapsed)
        if error is not None:
            raise error
        return RunTiming(host_wall_us=elapsed / _PS_PER_US, device_wall_us=0.0)

    @staticmethod
    def _of_one(task: Any) -> Callable[[Orchestrator, TaskArgs, CallConfig], object]:
        """The function that submits one task to the only chip."""
        return lambda orch, args, config: orch.submit_next_level(task, args, config, worker=0)

    def _error(self, run: Run, orch_fn: Callable[..., object], args: Any, config: CallConfig) -> BaseException | None:
        """Builds the graph and drains it; returns what went wrong. What orch_fn submitted before it raised runs."""
        first = None
        orch = Orchestrator(run)
        try:
            orch_fn(orch, args, config)
        except BaseException as error:
            first = error
        orch.close()
        if first is not None and not isinstance(first, Exception):
            self._has_failed = True  # the program is being ended
            return first
        try:
            run.drain()
        except BaseException as error:
            self._has_failed = True
            return first or error
        return first

    def _cleaned(self, equipment: Equipment, error: BaseException | None) -> BaseException | None:
        """Ends a run: frees what it is not to leave behind. It returns the error that is to be raised."""
        try:
            equipment.chips.settle(self._has_failed)
        except RaceError as race:
            if error is None:
                return race
            error.add_note(str(race))
        finally:
            equipment.domains.sweep()
        return error

    def _ready(self) -> Equipment:
        if self._equipment is None:
            raise RuntimeError("run: the Worker has no chips; call init() first, and close() last")
        if self._is_running:
            raise RuntimeError("run: a run is going on; orch_fn cannot start another")
        if self._has_failed:
            raise RuntimeError("run: an earlier run of this Worker has failed; close it and make another")
        return self._equipment

    def close(self) -> None:
        """Gives the chips back. Closing twice does nothing.

        Raises:
            RuntimeError: a run is going on.
        """
        if self._is_running:
            raise RuntimeError("close: a run is going on")
        if self._equipment is not None:
            self._equipment.chips.close()
            self._equipment = self._bootstrapped = None
