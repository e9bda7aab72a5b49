"""torch.profiler.profile: what one rank does between a start and a stop."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import Any

from torchemu import runtime
from torchemu.frontends.numpy._streams import synchronize
from torchemu.frontends.numpy.profiler._averages import EventList, events_of
from torchemu.frontends.numpy.profiler._schedule import ProfilerAction, always
from torchemu.profile.annotation import record_function
from torchemu.profile.recording import LEVELS, Recording, known
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


def supported_activities() -> set[ProfilerActivity]:
    """Returns what can be recorded."""
    return {ProfilerActivity.CPU, ProfilerActivity.CUDA}


class _KinetoProfile:
    """A profile without a schedule.

    Args:
        activities: what is recorded; everything without.
        experimental_config: the level.

    The other arguments are PyTorch's, and mean nothing here: places in the program are always recorded, and shapes are
    those of collectives.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: _ExperimentalConfig | None = None,
        acc_events: bool = False,
        **ignored: Any,
    ) -> None:
        self.activities = set(activities) if activities is not None else supported_activities()
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        self._level = experimental_config.trace_level if experimental_config is not None else LEVELS[0]
        self._recording: Recording | None = None
        self._rank, self._ranks = 0, 1
        self._metadata: dict[str, Any] = {}

    # -- recording

    def start(self) -> None:
        """Begins to record this rank."""
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        """Waits for what the rank has issued, and records no more."""
        self.stop_trace()

    def prepare_trace(self) -> None:
        """Takes no time here."""

    def start_trace(self) -> None:
        """Begins to record this rank."""
        context = runtime.current()
        self._rank = context.rank
        self._ranks = context.tasks.nprocs if context.tasks is not None else 1
        self._recording = Recording(context.world, self._level)
        self._toggle(True)

    def stop_trace(self) -> None:
        """Waits for what the rank has issued, and records no more."""
        try:
            synchronize()
        finally:
            self._end()

    def _end(self) -> None:
        if self._recording is not None:
            self._toggle(False)
            self._recording.end()

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Stops or goes on recording within one profile. Whatever the activities are, it is all of them."""
        self._toggle(enable)

    def _toggle(self, on: bool) -> None:
        requested = known(runtime.current().world).requested
        for recording in (self._recording, requested):
            if recording is not None and not recording.ended:
                (recording.open if on else recording.close)(self._rank)

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
            "metadata": self._metadata,
        }

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes what was recorded, for Perfetto, HTA and other viewers of PyTorch's profiles.

        Args:
            path: .gz at its end is compressed; .pftrace or .perfetto-trace is Perfetto's own format, with the hardware.
        """
        path = os.fspath(path)
        single = form(path) == "perfetto"
        self._recorded().write(path, "perfetto" if single else "kineto", **self._options())

    def events(self) -> EventList:
        """Returns what the host and the device did, in the order of time."""
        return events_of(self._recorded().events(**self._options()))

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, **_: Any) -> EventList:
        """The same, added up by name."""
        return self.events().key_averages()

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a text to the file that export_chrome_trace() writes."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds something in JSON to the file that export_chrome_trace() writes."""
        self._metadata[key] = json.loads(value)


class profile(_KinetoProfile):  # noqa: N801
    """Records what one rank does in a with block, or between start() and stop(), in simulated time.

    Args:
        schedule: what is done in which step(), see torch.profiler.schedule; without, all is recorded.
        on_trace_ready: called with the profile when something has been recorded to its end.

    The other arguments are those of _KinetoProfile.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        use_cuda: bool | None = None,
        **options: Any,
    ) -> None:
        if use_cuda is not None:
            warnings.warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2)
            activities = {ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if use_cuda else [])}
        super().__init__(activities=activities, **options)
        self.schedule, self.on_trace_ready = schedule or always, on_trace_ready
        self.record_steps = schedule is not None
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._step: record_function | None = None

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
            super().start()
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
            super().start()
        self._begin_step()

    def stop(self) -> None:
        """Ends the last step, waits for what the rank has issued, and records no more."""
        self._end_step()
        if _records(self.current_action):
            self._save(ready=True)
        self.current_action = ProfilerAction.NONE

    def _save(self, ready: bool) -> None:
        self.stop_trace()
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
