"""The flight recorder of a rank, and the files that it writes.

A rank records when TORCH_FR_BUFFER_SIZE (or TORCH_NCCL_TRACE_BUFFER_SIZE) says how many operations to keep, or when
TORCH_FR_DUMP_TEMP_FILE (or TORCH_NCCL_DEBUG_INFO_TEMP_FILE) says where to write them. Its file, of that name with the
rank's number behind it, is written when a spawn fails by a deadlock, a mismatch or a timeout.
"""

from __future__ import annotations

import json
import os
import pickle
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.c10d.flight_recorder import FlightRecorder
from torchemu.c10d.hooks import Watched, check_as_asked_for, detach
from torchemu.errors import DeadlockError, DistBackendError, MismatchError
from torchemu.runtime.rank_local import RankLocal
from torchemu.runtime.watchdog import Aborted

if TYPE_CHECKING:
    from torchemu.runtime.tasks import Failure, Tasks

DEFAULT_SIZE = 2000
"""Returns how many operations are kept where the environment does not say it."""

_SIZE = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
_FILE = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
_DEFAULT_FILE = "/tmp/comm_lib_trace_rank_"
_GRACE = 10**12  # picoseconds for the ranks that are late when one fails, to issue what can be compared


def _first_of(names: Sequence[str]) -> str | None:
    return next((os.environ[name] for name in names if name in os.environ), None)


def _size_asked_for() -> int:
    """Returns how many operations the environment wants to be kept; 0 for no recorder.

    Raises:
        RuntimeError: it says no number.
    """
    text = _first_of(_SIZE)
    if text is None:
        return 0 if _first_of(_FILE) is None else DEFAULT_SIZE
    try:
        return max(int(text), 0)
    except ValueError:
        raise RuntimeError(f"Invalid value for environment variable: {_SIZE[0]}: {text!r} is no number") from None


def _make() -> FlightRecorder | None:
    size = _size_asked_for()
    return _installed(size) if size else None


def _installed(size: int) -> FlightRecorder:
    """A new recorder of the running rank. Where the environment names a file it is written when the spawn fails."""
    recorder, tasks, prefix = FlightRecorder(size), runtime.current().tasks, _first_of(_FILE)
    if tasks is not None and prefix:
        if _Files not in tasks.shared:
            tasks.shared[_Files] = _Files(tasks)
        tasks.shared[_Files].recorders.append((recorder, prefix))
    return recorder


class _Files:
    """The files of one spawn's ranks, which are written when it fails.

    Attributes:
        recorders: with what their files' names begin.
    """

    def __init__(self, tasks: Tasks) -> None:
        self.recorders: list[tuple[FlightRecorder, str]] = []
        self._world = tasks.world
        tasks.when_failed.append(self._write)
        tasks.grace = _GRACE if tasks.grace is None else tasks.grace

    def _write(self, failures: Sequence[Failure]) -> None:
        if not any(
            isinstance(f.exception, (DeadlockError, MismatchError, DistBackendError, Aborted)) for f in failures
        ):
            return
        self._let_devices_end()
        try:
            for recorder, prefix in self.recorders:
                recorder.write(prefix)
        except OSError as error:
            warnings.warn(f"the flight recorder's files cannot be written: {error}", stacklevel=2)

    def _let_devices_end(self) -> None:
        """Lets what devices are in the middle of come to its end, so that the ranks' files agree on it."""
        timer = go.Timer(self._world.handle, 0, _GRACE)
        while not go.Await(self._world.handle, 0, timer):
            pass
        go.Release(timer)


_recorder: RankLocal[FlightRecorder | None] = RankLocal(_make)


def watch_as_asked_for(group: Watched) -> None:
    """Looks at what this rank issues to a new group as the environment asks: records it, checks it for NaN."""
    recorder = _recorder.get()
    if recorder is not None:
        recorder.join(group)
    check_as_asked_for(group)


def enable_timing(group: Watched) -> None:
    """Lets what is recorded of a group say when devices begin, whatever TORCH_NCCL_ENABLE_TIMING says."""
    recorder = _recorder.get()
    if recorder is not None and group.hooks is not None and FlightRecorder in group.hooks.watchers:
        recorder.enable_timing(group)


class FlightRecorderHook:
    """Records what a rank issues to a group that is not recorded anyhow: ``FlightRecorderHook.attach(group)``."""

    def __init__(self, group: Watched) -> None:
        self._group = group

    @staticmethod
    def attach(pg: Watched, global_ranks: Sequence[int] = ()) -> FlightRecorderHook:
        """Records what this rank issues to the group from now on.

        Args:
            global_ranks: means nothing here: the group knows.
        """
        recorder = _recorder.get()
        if recorder is None:
            recorder = _installed(DEFAULT_SIZE)
            _recorder.set(recorder)
        recorder.join(pg)
        return FlightRecorderHook(pg)

    def remove(self) -> None:
        """Records no more."""
        detach(self._group, FlightRecorder)


def _dumped(collectives: bool | None, frames: bool, only_active: bool | None) -> dict[str, Any]:
    recorder = _recorder.get() or FlightRecorder(0)
    return recorder.dump(collectives is not False, frames, bool(only_active))


def dump_trace(
    includeCollectives: bool | None = None,  # noqa: N803 (PyTorch's names)
    includeStackTraces: bool | None = None,  # noqa: N803
    onlyActive: bool | None = None,  # noqa: N803
    backend: str = "gloo",
) -> bytes:
    """Returns what this rank issued last, pickled.

    Args:
        includeCollectives: with the operations; None is true.
        includeStackTraces: with the places that they were called from; None is true.
        onlyActive: without those that have ended; None is false.
        backend: means nothing: a rank has one recorder.
    """
    return pickle.dumps(_dumped(includeCollectives, includeStackTraces is not False, onlyActive))


def dump_trace_json(
    includeCollectives: bool | None = None,  # noqa: N803
    onlyActive: bool | None = None,  # noqa: N803
    backend: str = "gloo",
) -> bytes:
    """Acts as dump_trace, in JSON: without places, and with 0 for what has not happened."""
    dumped = _dumped(includeCollectives, False, onlyActive)
    for entry in dumped.get("entries", []):
        for key in ("time_discovered_started_ns", "time_discovered_completed_ns"):
            entry[key] = entry[key] or 0
    return json.dumps(dumped, sort_keys=True, separators=(",", ":")).encode()


def dump_trace_file(
    rank: int,
    includeCollectives: bool | None = None,  # noqa: N803
    includeStackTraces: bool | None = None,  # noqa: N803
    onlyActive: bool | None = None,  # noqa: N803
    backend: str = "gloo",
) -> None:
    """Acts as dump_trace, to the file of a rank, which TORCH_FR_DUMP_TEMP_FILE and its number name.

    Raises:
        OSError: it cannot be written.
    """
    with open(f"{_first_of(_FILE) or _DEFAULT_FILE}{rank}", "wb") as file:
        file.write(dump_trace(includeCollectives, includeStackTraces, onlyActive))


def reset_trace(backend: str = "gloo") -> None:
    """Forgets what this rank issued."""
    recorder = _recorder.get()
    if recorder is not None:
        recorder.reset()
