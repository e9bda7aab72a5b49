"""torch.profiler.profile: what one rank does between a start and a stop."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from torchemu import runtime
from torchemu.frontends.numpy._absent import missing
from torchemu.frontends.numpy._streams import synchronize
from torchemu.frontends.numpy.profiler._schedule import ProfilerAction, always
from torchemu.profile.annotation import record_function
from torchemu.profile.recording import LEVELS, Recording, of_profile
from torchemu.profile.run import form
from torchemu.runtime.waiting import host_time


class ProfilerActivity(Enum):
    """The activity that is recorded: hosts (CPU), or devices, which programs written for GPUs call CUDA."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class _ExperimentalConfig:
    """Options of a profile that are not PyTorch's, and PyTorch's own, which mean nothing here.

    Args:
        trace_level: how much is recorded: one of collective, step and link.
    """

    def __init__(self, *, trace_level: str = LEVELS[0], **ignored: Any) -> None:
        if trace_level not in LEVELS:
            raise ValueError(f"{trace_level!r} is no level of a trace: the levels are {', '.join(LEVELS)}")
        self.trace_level = trace_level


@dataclass(frozen=True)
class _Event:
    """Something that the host or the device did; times in microseconds.

    Attributes:
        name: the operator's, the driver's call, the program's own name, or the kernel's.
        device_type: "CPU" for what the host did, "CUDA" for what the device did.
        start, end: when.
    """

    name: str
    device_type: str
    start: float
    end: float


_HOST = ("cpu_op", "cuda_runtime", "user_annotation")
_DEVICE = ("kernel", "gpu_memcpy")


class profile:  # noqa: N801 (PyTorch's name)
    """Records what one rank does in a with block, or between start() and stop(), in simulated time.

    Args:
        activities: what is recorded; everything without.
        schedule: what is done in which step(), see torch.profiler.schedule; without, all is recorded.
        on_trace_ready: called with the profile when something has been recorded to its end.
        experimental_config: the level.

    The other arguments are PyTorch's, and mean nothing here: places in the program are always recorded, and shapes are
    those of collectives. Sums and tables of events are PyTorch's own: this has none.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: _ExperimentalConfig | None = None,
        acc_events: bool = False,
    ) -> None:
        self.activities = {ProfilerActivity.CPU, ProfilerActivity.CUDA} if activities is None else set(activities)
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        self._level = experimental_config.trace_level if experimental_config is not None else LEVELS[0]
        self._recording: Recording | None = None
        self._rank, self._ranks = 0, 1
        self.schedule, self.on_trace_ready = schedule or always, on_trace_ready
        self.record_steps = schedule is not None
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._step: record_function | None = None

    if not TYPE_CHECKING:  # which is not to believe that there is everything

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(missing(f"torch.profiler.profile.{name}"))

    # -- recording

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if kind is None:
            self.stop()
        else:
            self._end()  # what the rank has issued may never end

    def start(self) -> None:
        """Begins with step 0."""
        if _records(self.current_action):
            self._begin()
        self._begin_step()

    def step(self) -> None:
        """Says that the program begins its next step."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        saved = before is ProfilerAction.RECORD_AND_SAVE
        if saved or (_records(before) and not _records(self.current_action)):
            self._save(ready=saved)
            before = ProfilerAction.NONE
        if _records(self.current_action) and not _records(before):
            self._begin()
        self._begin_step()

    def stop(self) -> None:
        """Ends the last step, waits for what the rank has issued, and records no more."""
        self._end_step()
        if _records(self.current_action):
            self._save(ready=True)
        self.current_action = ProfilerAction.NONE

    def _begin(self) -> None:
        context = runtime.current()
        self._rank = context.rank
        self._ranks = context.tasks.nprocs if context.tasks is not None else 1
        self._recording = Recording(context.world, self._level)
        for recording in of_profile(self._recording):
            recording.open(self._rank)

    def _end(self) -> None:
        if self._recording is not None:
            for recording in of_profile(self._recording):
                recording.close(self._rank)
            self._recording.end()

    def _save(self, ready: bool) -> None:
        try:
            synchronize()
        finally:
            self._end()
        if not ready:
            warnings.warn("Incorrect schedule: RECORD followed by NONE or WARMUP", stacklevel=3)
        elif self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _begin_step(self) -> None:
        if self.record_steps:
            self._step = record_function(f"ProfilerStep#{self.step_num}").__enter__()

    def _end_step(self) -> None:
        if self._step is not None:
            self._step.__exit__(None, None, None)
            self._step = None

    # -- what was recorded

    def _recorded(self) -> Recording:
        if self._recording is None or not self._recording.ended:
            raise AssertionError("Profiler must be stopped before it has results: it records, or has not begun")
        return self._recording

    def _options(self) -> dict[str, Any]:
        return {
            "rank": self._rank,
            "ranks": self._ranks,
            "no_host": ProfilerActivity.CPU not in self.activities,
            "no_device": self.activities <= {ProfilerActivity.CPU},
        }

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes what was recorded, for Perfetto, HTA and other viewers of PyTorch's profiles.

        Args:
            path: .gz at its end is compressed; .pftrace or .perfetto-trace is Perfetto's own format, with the hardware.
        """
        path = os.fspath(path)
        single = form(path) == "perfetto"
        self._recorded().write(path, "perfetto" if single else "kineto", **self._options())

    def events(self) -> list[_Event]:
        """Returns what the host and the device did, in the order of time."""
        bars = [bar for bar in self._recorded().events(**self._options())["traceEvents"] if bar["ph"] == "X"]
        kinds = {**dict.fromkeys(_HOST, "CPU"), **dict.fromkeys(_DEVICE, "CUDA")}
        found = [_Event(b["name"], kinds[b["cat"]], b["ts"], b["ts"] + b["dur"]) for b in bars if b["cat"] in kinds]
        return sorted(found, key=lambda e: (e.start, -e.end))


def _records(action: ProfilerAction) -> bool:
    return action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """An ``on_trace_ready`` that writes a file into a folder, as viewers of such folders want it.

    Args:
        dir_name: the folder, which is made.
        worker_name: begins the file's name; without, it is the rank.
        use_gzip: whether the file is compressed.

    Raises:
        ValueError: worker_name is no part of a file's name.
    """
    if worker_name and (Path(worker_name).name != worker_name or worker_name in (".", "..")):
        raise ValueError(f"worker_name begins the name of a file in {dir_name!r}, and is no path: {worker_name!r}")

    def handle(prof: profile) -> None:
        context = runtime.current()
        folder = Path(dir_name)
        folder.mkdir(parents=True, exist_ok=True)
        worker = worker_name or f"rank{context.rank}"
        nanoseconds = host_time() // 1000
        prof.export_chrome_trace(folder / f"{worker}.{nanoseconds}.pt.trace.json{'.gz' if use_gzip else ''}")

    return handle
