"""PyTorch's profilers, for each rank its own.

PyTorch has one Kineto for a process. While ranks run, profiles are of the kind that it had before, which is a thread's,
and ranks' operations are added to them by the names that PyTorch's backends give theirs. The files that are written of
them are the core's recordings, in simulated time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd import profiler, profiler_legacy
from torch.autograd.profiler_util import EventList, FunctionEvent

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.c10d.ops import OPS
from torchemu.frontends.torch import profiled_kernels
from torchemu.frontends.torch.session import Session
from torchemu.profile import annotation
from torchemu.profile.recording import Recording, of_profile
from torchemu.profile.run import form
from torchemu.runtime.rank_local import RankLocal

_open: RankLocal[list[Any]] = RankLocal(list)  # profiles that go on
_opened: list[Any] = []  # those of all ranks


def note(backend: str, operation: str, tensors: Sequence[torch.Tensor], work: Any) -> None:
    """Notes an operation in the profiles of the running rank.

    Args:
        backend: the group's.
        operation: as the program has called it.
        tensors: that it reads.
        work: its work.
    """
    for profile in _open.get() if _opened else ():
        shapes = [list(t.shape) for t in tensors] if profile.record_shapes else []
        profile.noted.append((f"{backend}:{_name(operation)}", shapes, work))
        if backend == "nccl":  # gloo's group records no arguments
            profile.noted.append(("record_param_comms", shapes, work))


def _name(operation: str) -> str:
    """Returns the name that PyTorch's backends give an operation."""
    op = OPS.get(operation)
    return operation if op is None or op.silent else op.kind.name


class RankProfile(profiler_legacy.profile):
    """A torch.autograd.profiler.profile of one thread.

    Args:
        enabled: without it this does nothing.
        options: as of PyTorch's; those of Kineto mean nothing.
    """

    _recording: Recording | None = None

    def __init__(self, enabled: bool = True, **options: Any) -> None:
        known = ("record_shapes", "with_flops", "profile_memory", "with_stack", "with_modules")
        self.noted: list[tuple[str, list[Any], Any]] = []
        self.kineto_results = None
        self.trace_id = ""
        self._has_device = bool(options.get("use_device") or options.get("use_cuda"))
        self._has_host = bool(options.get("use_cpu", True))
        super().__init__(enabled, **{name: options[name] for name in known if name in options})

    def _prepare_trace(self) -> None:
        """Nothing is to be prepared."""

    def _start_trace(self) -> None:
        self.entered = True
        _open.get().append(self)
        _opened.append(self)
        context = runtime.current()
        context.issue()
        self._recording = Recording(context.world)
        for recording in of_profile(self._recording):
            recording.open(context.rank)
        super()._start_trace()

    def __exit__(self, *error: Any) -> None:
        if not self.enabled:
            return
        if self in _open.get():
            _open.get().remove(self)
            _opened.remove(self)
        self._end_recording()
        super().__exit__(*error)
        _leave_out_modes(self.function_events)
        self.function_events.extend(_event(number, *noted) for number, noted in enumerate(self.noted))
        if self._has_device and self._recording is not None and not any(error):
            profiled_kernels.add(self.function_events, self._recording.events(**self._whose())["traceEvents"])

    def _end_recording(self) -> None:
        if self._recording is None or self._recording.ended:
            return
        context = runtime.current()
        try:
            if self._has_device and sys.exc_info()[0] is None:  # after an error what the rank has issued may never end
                torch.cuda.synchronize()
        finally:
            for recording in of_profile(self._recording):
                recording.close(context.rank)
            self._recording.end()

    def export_chrome_trace(self, path: str | os.PathLike[str], *_: Any, **__: Any) -> None:
        """Writes what the rank and its device did; a name that ends in .pftrace is Perfetto's own format. How newer
        PyTorch wants a GPU's graphs and streams to be written means nothing here."""
        self._check_finish()
        if self._recording is None:
            raise RuntimeError("can't export a trace of a profile that has recorded nothing")
        path = os.fspath(path)
        self._recording.write(
            path,
            "perfetto" if form(path) == "perfetto" else "kineto",
            **self._whose(),
            no_host=not self._has_host,
            no_device=not self._has_device,
        )

    def _whose(self) -> dict[str, int]:
        """Returns whose events are written of a recording."""
        context = runtime.current()
        return {"rank": context.rank, "ranks": 1 if context.tasks is None else context.tasks.nprocs}

    def events(self) -> Any:
        """Returns the recorded events."""
        self._check_finish()
        return self.function_events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, *_: Any, **__: Any) -> Any:
        """Averages events; overloads of an operation count as one, and Python's functions are no events."""
        return super().key_averages(group_by_input_shape, group_by_stack_n)

    def toggle_collection_dynamic(self, enable: bool, activities: Any) -> None:
        """Means nothing: all is recorded."""

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> Any:
        """Writes stacks to a file."""
        return self.function_events.export_stacks(path, metric)


_MODE = "PythonDispatchMode"
"""The name of events in which a dispatch mode does an operation: torchemu's does all of a rank's."""


def _leave_out_modes(events: EventList) -> None:
    """Leaves out how modes do operations, which are events themselves: a program has called each once."""
    out: set[int] = set()
    for event in sorted(events, key=lambda event: (event.time_range.start, -event.time_range.end)):
        if event.name == _MODE or (event.cpu_parent is not None and id(event.cpu_parent) in out):
            out.add(id(event))
    for event in events:
        event.cpu_children = [child for child in event.cpu_children if id(child) not in out]
    events[:] = [event for event in events if id(event) not in out]


def _event(number: int, name: str, shapes: list[Any], work: Any) -> FunctionEvent:
    took = go.Duration(work.handle) / 10**6 if go.IsDone(work.handle) else 0
    return FunctionEvent(
        id=-1 - number, name=name, thread=0, start_us=0, end_us=took, input_shapes=shapes, stack=[], is_async=True,
        is_legacy=True,
    )  # fmt: skip


def install(run: Session) -> None:
    """Gives each rank its own, until the run ends."""
    real = profiler.profile

    class Profile(real):  # type: ignore[misc, valid-type] # so that isinstance knows those of ranks, and of others
        """torch.autograd.profiler.profile."""

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            kind = real if runtime.running() is None else RankProfile
            made = object.__new__(kind)
            made.__init__(*args, **kwargs)
            return made

    run.replace(profiler, "profile", Profile)
    run.replace(torch.autograd.profiler, "profile", Profile)
    run.replace(torch.autograd, "_supported_activities", _supported_activities)
    run.replace(torch.profiler.profiler, "_add_execution_trace_observer", _observing)
    _install_annotations(run)


_observe = torch.profiler.profiler._add_execution_trace_observer


def _observing(path: str) -> bool:
    """Registers PyTorch's observer, of which a process has one: it would write what all ranks do into a rank's file."""
    context = runtime.running()
    if context is not None and context.tasks is not None and context.tasks.nprocs > 1:
        raise NotImplementedError(
            "torch.profiler.ExecutionTraceObserver: PyTorch has one for a process, and ranks share this one; "
            "torchemu run --trace NAME.et writes an execution trace for each rank, in Chakra's format"
        )
    observed: bool = _observe(path)
    return observed


_built_for = torch.autograd._supported_activities


def _supported_activities() -> set[Any]:
    """Returns the activities that profiles record without being told: devices', too, where programs see some."""
    return {*_built_for(), *([torch.profiler.ProfilerActivity.CUDA] if torch.cuda.is_available() else [])}


def _install_annotations(run: Session) -> None:
    """Has the names that programs give to what they do in the core's recordings, too."""
    kind = profiler.record_function
    enter, leave = kind.__enter__, kind.__exit__

    def __enter__(self: Any) -> Any:  # noqa: N807
        if runtime.running() is not None:
            self._annotation = annotation.record_function(self.name, self.args).__enter__()
        return enter(self)

    def __exit__(self: Any, *error: Any) -> Any:  # noqa: N807
        noted, self._annotation = getattr(self, "_annotation", None), None
        if noted is not None:
            noted.__exit__(*error)
        return leave(self, *error)

    run.replace(kind, "__enter__", __enter__)
    run.replace(kind, "__exit__", __exit__)
