"""The flight recorder: what each rank issued last, for torch.distributed.flight_recorder.fr_trace to compare.

A rank records when TORCH_FR_BUFFER_SIZE (or TORCH_NCCL_TRACE_BUFFER_SIZE) says how many operations to keep, or when
TORCH_FR_DUMP_TEMP_FILE (or TORCH_NCCL_DEBUG_INFO_TEMP_FILE) says where to write them. Its file, of that name with the
rank's number behind it, is written when a spawn fails by a deadlock, a mismatch or a timeout. Times are simulated.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import types
import warnings
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torchemu import _runtime
from torchemu._binding import go
from torchemu._rank_local import RankLocal
from torchemu._tensor import Tensor
from torchemu._waiting import host_time, milliseconds
from torchemu.distributed._backends import Backend
from torchemu.distributed._hooks import Operation, Watcher, attach, check_as_asked_for, detach
from torchemu.errors import DeadlockError, DistBackendError, MismatchError

if TYPE_CHECKING:
    from torchemu._tasks import Failure, Tasks
    from torchemu.distributed._groups import ProcessGroup
    from torchemu.distributed._work import Work

VERSION = "2.10"
"""Of the schema: PyTorch 2.11's."""

DEFAULT_SIZE = 2000
"""How many operations are kept where the environment does not say it."""

_SIZE = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
_FILE = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
_DEFAULT_FILE = "/tmp/comm_lib_trace_rank_"
_FRAMES = 64  # of a call that are kept, from the innermost one
_NANOSECOND = 1000  # picoseconds
_GRACE = 10**12  # picoseconds for the ranks that are late when one fails, to issue what can be compared

_NAMES = {
    "all_reduce_coalesced": "allreduce_coalesced",
    "all_gather_coalesced": "allgather_coalesced",
    "all_gather_into_tensor": "_all_gather_base",
    "reduce_scatter_tensor": "_reduce_scatter_base",
    "all_to_all_single": "all_to_all",
    "gather_single": "gather",
}
"""What PyTorch's recorder calls operations, where it is not what programs call them."""

_TYPES = {
    "float16": "Half",
    "bfloat16": "BFloat16",
    "float32": "Float",
    "float64": "Double",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "uint16": "UInt16",
    "uint32": "UInt32",
    "uint64": "UInt64",
    "bool": "Bool",
    "float8_e4m3fn": "Float8_e4m3fn",
    "float8_e5m2": "Float8_e5m2",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}

Frames = list[tuple[types.CodeType, int]]
"""The places of a call, from the innermost one: code, and offset in it."""


@dataclass
class _Entry:
    """An operation. ``about`` is what PyTorch's schema has of it, but for times and state."""

    about: dict[str, Any]
    frames: Frames
    work: Work | None = None  # until it has ended
    began: int | None = None  # in ns
    ended: int | None = None

    def look(self) -> bool:
        """Notes how far the device is with it; whether there is nothing more to come."""
        if self.work is None:  # it has ended, or was never issued
            return True
        begin, _, end = go.Progress(self.work._event.number).partition(",")
        self.began = int(begin) // _NANOSECOND if begin else None
        if end:
            self.ended, self.work = int(end) // _NANOSECOND, None
        return self.ended is not None

    def described(self, with_frames: bool) -> dict[str, Any]:
        """It, in PyTorch's schema."""
        state = "scheduled" if self.began is None else "started" if self.ended is None else "completed"
        frames = {"frames": [_frame(code, offset) for code, offset in self.frames]} if with_frames else {}
        return {
            **frames,
            **self.about,
            "state": state,
            "time_discovered_started_ns": self.began,
            "time_discovered_completed_ns": self.ended,
            "retired": self.ended is not None,
        }


@dataclass
class _Numbers:
    """How many operations of each kind a rank has issued to a group."""

    number: int  # the group's, on this rank
    p2p: int = 0
    operations: int = 0
    in_batch: bool = False
    status: dict[str, int] = field(
        default_factory=lambda: {
            "last_enqueued_collective": -1,
            "last_started_collective": -1,
            "last_completed_collective": -1,
        }
    )


class FlightRecorder(Watcher):
    """What one rank issued last, to any group.

    Args:
        size: how many operations to keep.
    """

    def __init__(self, size: int) -> None:
        self._rank = _runtime.current().rank
        self._entries: deque[_Entry] = deque(maxlen=size)
        self._open: deque[_Entry] = deque(maxlen=size)  # those that may not have ended
        self._recorded = 0
        self._groups: dict[str, _Numbers] = {}
        self._config: dict[str, dict[str, str]] = {}

    def join(self, group: ProcessGroup) -> None:
        """Records what the rank issues to a group from now on."""
        name = group.group_name
        self._config[name] = {"name": name, "desc": group.group_desc, "ranks": str(list(group.ranks))}
        self._groups.setdefault(name, _Numbers(len(self._groups)))
        attach(group, FlightRecorder, self)

    def before(self, group: ProcessGroup, operation: Operation) -> None:
        """Adds an operation, instead of the oldest one where there is no more room."""
        self._retire()
        entry = _Entry(self._described(group, operation), _frames())
        self._entries.append(entry)
        self._open.append(entry)

    def after(self, operation: Operation, work: Work) -> None:
        """Notes the work of the operation that was added last."""
        self._open[-1].work = work

    def batch(self, group: ProcessGroup, begins: bool) -> None:
        """Messages in one go have one number, and after them comes an entry for all, where the backend is nccl: gloo
        issues each by itself."""
        if _library(group, ()) == Backend.GLOO:
            return
        numbers = self._groups[group.group_name]
        if begins:
            numbers.p2p += 1
            numbers.in_batch = True
            return
        numbers.in_batch = False
        last = self._open[-1].work if self._open else None
        entry = _Entry(self._about(group, "coalesced", ([], []), True), _frames(), last)
        self._entries.append(entry)
        self._open.append(entry)

    def reset(self) -> None:
        """Forgets what was recorded."""
        self._entries.clear()
        self._open.clear()

    def _retire(self) -> None:
        """Lets go of the works of those that have ended, from the oldest one."""
        while self._open and self._open[0].look():
            self._open.popleft()

    def _described(self, group: ProcessGroup, operation: Operation) -> dict[str, Any]:
        numbers = self._groups[group.group_name]
        numbers.operations += 1
        numbers.p2p += operation.is_message and not numbers.in_batch
        return self._about(group, _name(group, operation), _sides(operation), operation.is_message)

    def _about(
        self, group: ProcessGroup, name: str, tensors: tuple[list[Tensor], list[Tensor]], is_message: bool
    ) -> dict[str, Any]:
        numbers, (ins, outs) = self._groups[group.group_name], tensors
        seq = go.NextSeq(group.handle, self._rank) + (not is_message)
        if not is_message:
            numbers.status["last_enqueued_collective"] = seq
        self._recorded += 1
        return {
            "record_id": self._recorded - 1,
            "pg_id": numbers.number,
            "process_group": (group.group_name, group.group_desc),
            "thread_name": "python",
            "thread_id": str(self._rank),
            "collective_seq_id": seq,
            "p2p_seq_id": numbers.p2p,
            "op_id": numbers.operations,
            "profiling_name": f"{_library(group, ins or outs)}:{name}",
            "time_created_ns": host_time() // _NANOSECOND,
            "input_sizes": _sizes(ins),
            "input_dtypes": [_type(t) for t in ins],
            "output_sizes": _sizes(outs),
            "output_dtypes": [_type(t) for t in outs],
            "timeout_ms": milliseconds(group.timeout),
            "is_p2p": is_message,
        }

    def dump(self, collectives: bool = True, frames: bool = True, only_active: bool = False) -> dict[str, Any]:
        """All of it, in PyTorch's schema.

        Args:
            collectives: with the operations.
            frames: with the places that they were called from.
            only_active: without those that have ended.
        """
        for entry in self._open:
            entry.look()
        text = {
            "version": VERSION,
            "pg_config": self._config,
            "comm_lib_version": "",
            "pg_status": {str(numbers.number): self._status(numbers) for numbers in self._groups.values()},
        }
        if not collectives:
            return text
        shown = [e for e in self._entries if not (only_active and e.ended is not None)]
        return {**text, "entries": [e.described(frames) for e in shown]}

    def _status(self, numbers: _Numbers) -> dict[str, int]:
        """The last of a group's collectives that the rank has issued, begun and ended."""
        status = numbers.status
        for entry in self._entries:
            if entry.about["pg_id"] != numbers.number or entry.about["is_p2p"]:
                continue
            seq = entry.about["collective_seq_id"]
            if entry.began is not None:
                status["last_started_collective"] = max(status["last_started_collective"], seq)
            if entry.ended is not None:
                status["last_completed_collective"] = max(status["last_completed_collective"], seq)
        return dict(status)

    def write(self, prefix: str) -> None:
        """Writes the rank's file, for fr_trace."""
        with open(f"{prefix}{self._rank}", "wb") as file:
            pickle.dump(self.dump(), file)


def _name(group: ProcessGroup, operation: Operation) -> str:
    """What PyTorch's recorder calls it; a message names both sides by group rank."""
    peer = "?" if operation.peer < 0 else operation.peer
    if operation.name == "send":
        return f"send {group.rank()}->{peer}"
    if operation.name == "recv":
        return f"recv {group.rank()}<-{peer}"
    return _NAMES.get(operation.name, operation.name)


def _library(group: ProcessGroup, tensors: Sequence[Tensor]) -> str:
    """gloo, or nccl for what is not: readers know no other names."""
    if group.backend == Backend.GLOO:
        return Backend.GLOO
    on_host = bool(tensors) and not tensors[0].device.is_sip
    return Backend.GLOO if on_host and Backend.GLOO in group.backend else Backend.NCCL


def _sides(operation: Operation) -> tuple[list[Tensor], list[Tensor]]:
    """What the rank gives and receives: an operation in place has its tensors on both sides."""
    if operation.name == "barrier":
        return [], []
    if operation.in_place:
        both = list(operation.ins or operation.outs)
        return both, both
    return list(operation.ins), list(operation.outs)


def _sizes(tensors: Sequence[Tensor]) -> list[list[int]]:
    """Shapes; several equal ones as of one tensor that holds them all."""
    shapes = [list(t.shape) for t in tensors]
    if len(shapes) > 1 and all(shape == shapes[0] for shape in shapes):
        return [[len(shapes), *shapes[0]]]
    return shapes


def _type(t: Tensor) -> str:
    return _TYPES.get(t.dtype.name, t.dtype.name)


def _frames() -> Frames:
    """Where the program called, without this package's frames."""
    frame: types.FrameType | None = sys._getframe(1)
    places: Frames = []
    while frame is not None and len(places) < _FRAMES:
        if not frame.f_code.co_filename.startswith(_runtime.PACKAGE):
            places.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return places


def _frame(code: types.CodeType, offset: int) -> dict[str, Any]:
    """A place, as PyTorch shows it."""
    line = next((n for begin, end, n in code.co_lines() if n is not None and begin <= offset < end), 0)
    return {"name": code.co_name, "filename": code.co_filename, "line": line}


# -- where a rank has it


def _first_of(names: Sequence[str]) -> str | None:
    return next((os.environ[name] for name in names if name in os.environ), None)


def _size_asked_for() -> int:
    """How many operations the environment wants to be kept; 0 for no recorder.

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
    """A new recorder of the running rank, which writes its file when the rank's spawn fails."""
    recorder, tasks = FlightRecorder(size), _runtime.current().tasks
    if tasks is not None:
        if _Files not in tasks.shared:
            tasks.shared[_Files] = _Files(tasks)
        tasks.shared[_Files].recorders.append((recorder, _first_of(_FILE) or _DEFAULT_FILE))
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
        if not any(isinstance(f.exception, (DeadlockError, MismatchError, DistBackendError)) for f in failures):
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


def watch_as_asked_for(group: ProcessGroup) -> None:
    """Looks at what this rank issues to a new group as the environment asks: records it, checks it for NaN."""
    recorder = _recorder.get()
    if recorder is not None:
        recorder.join(group)
    check_as_asked_for(group)


class FlightRecorderHook:
    """Records what a rank issues to a group that is not recorded anyhow: ``FlightRecorderHook.attach(group)``."""

    def __init__(self, group: ProcessGroup) -> None:
        self._group = group

    @staticmethod
    def attach(pg: ProcessGroup, global_ranks: Sequence[int] = ()) -> FlightRecorderHook:
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
    """What this rank issued last, pickled.

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
    """As dump_trace, in JSON: without places, and with 0 for what has not happened."""
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
    """As dump_trace, to the file of a rank, which TORCH_FR_DUMP_TEMP_FILE and its number name.

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
