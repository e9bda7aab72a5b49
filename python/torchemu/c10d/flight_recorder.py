"""The flight recorder: what each rank issued last, in the schema that PyTorch's fr_trace reads. Times are simulated."""

from __future__ import annotations

import ctypes
import os
import pickle
import sys
import threading
import types
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.c10d.backends import Backend
from torchemu.c10d.hooks import TRUE, Operation, Watched, Watcher, attach
from torchemu.c10d.ops import OPS
from torchemu.runtime.buffer import form_of
from torchemu.runtime.waiting import host_time, milliseconds

if TYPE_CHECKING:
    from torchemu.c10d.work import Work

VERSION = "2.10"
"""Of the schema: PyTorch 2.11's."""

_FRAMES = 64  # of a call that are kept, from the innermost one
_NANOSECOND = 1000  # picoseconds
_MILLISECOND = 10**6  # nanoseconds
_TIMING = "TORCH_NCCL_ENABLE_TIMING"

comm_lib_version = ""
"""The version of the library that a front end's groups are named after."""

_APIECE = {op.apiece for op in OPS.values() if op.apiece}
"""Its names of collectives whose blocks may have several sizes, after its entries for the blocks."""

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

_BARRIER = "all_reduce_barrier"
"""The operation by which NCCL does a barrier."""


@dataclass(frozen=True, slots=True)
class _Side:
    """The tensors that a rank gives, or receives."""

    sizes: list[list[int]] = field(default_factory=list)
    types: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, tensors: Sequence[Any], are_apart: bool = False) -> _Side:
        """The side of tensors; several equal ones are shown as one that holds them all, unless they are apart."""
        shapes = [list(form_of(t).shape) for t in tensors]
        types = [_TYPES.get(name, name) for name in (form_of(t).dtype for t in tensors)]
        if len(shapes) > 1 and not are_apart and all(shape == shapes[0] for shape in shapes):
            return cls([[len(shapes), *shapes[0]]], types[:1])
        return cls(shapes, types)


@dataclass(frozen=True, slots=True)
class _Shown:
    """An entry as it is recorded.

    Attributes:
        name: of the operation.
        given, received: the tensors.
        is_part: it stays scheduled, for the entry of all parts together has the times.
    """

    name: str
    given: _Side = field(default_factory=_Side)
    received: _Side = field(default_factory=_Side)
    is_part: bool = False


Frames = tuple[tuple[types.CodeType, int], ...]
"""The places of a call, from the innermost one: code, and offset in it."""


@dataclass(slots=True)
class _Entry:
    """An operation. ``about`` is what PyTorch's schema has of it, but for times and state."""

    about: dict[str, Any]
    frames: Frames
    numbers: _Numbers
    is_part: bool = False  # see _Shown
    work: Work | None = None  # until it has ended
    began: int | None = None  # in ns
    ended: int | None = None

    def look(self) -> bool:
        """Notes how far the device is with it; whether there is nothing more to come."""
        if self.work is None:  # it has ended, or is a part, or was never issued
            return True
        begin, end = go.Began(self.work.core_number), go.Ended(self.work.core_number)
        self.began = begin // _NANOSECOND if begin >= 0 else None
        if end >= 0:
            self.ended, self.work = end // _NANOSECOND, None
        return self.ended is not None

    def described(self, with_frames: bool) -> dict[str, Any]:
        """It, in PyTorch's schema."""
        began = self.began if self.numbers.is_timed else None
        state = "completed" if self.ended is not None else "scheduled" if began is None else "started"
        frames = {"frames": [_frame(code, offset) for code, offset in self.frames]} if with_frames else {}
        took = {} if began is None or self.ended is None else {"duration_ms": (self.ended - began) / _MILLISECOND}
        return {
            **frames,
            **self.about,
            **took,
            "state": state,
            "time_discovered_started_ns": began,
            "time_discovered_completed_ns": self.ended,
            "retired": self.ended is not None,
        }


@dataclass
class _Numbers:
    """The numbers of operations of each kind that a rank has issued to a group."""

    number: int  # the group's, on this rank
    is_timed: bool = True  # entries say when the device began
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
    """The recorder of one rank keeps what it issued last, to any group.

    Args:
        size: how many operations to keep.
    """

    def __init__(self, size: int) -> None:
        self._rank = runtime.current().rank
        self._entries: deque[_Entry] = deque(maxlen=size)
        self._open: deque[_Entry] = deque(maxlen=size)  # those that may not have ended
        self._last: list[_Entry] = []  # of the operation that was added last
        self._last_work: Work | None = None  # the same operation's
        self._recorded = 0
        self._groups: dict[str, _Numbers] = {}
        self._config: dict[str, dict[str, str]] = {}
        self._calls: dict[tuple[int, ...], Frames] = {}  # one of each: calls come from the same places again and again

    def join(self, group: Watched) -> None:
        """Records what the rank issues to a group from now on."""
        name = group.group_name
        self._config[name] = {"name": name, "desc": group.group_desc, "ranks": str(list(group.ranks))}
        self._groups.setdefault(name, _Numbers(len(self._groups), _is_timing_asked_for()))
        attach(group, FlightRecorder, self)

    def enable_timing(self, group: Watched) -> None:
        """Lets a group's entries say when the device began, whatever the environment says."""
        self._groups[group.group_name].is_timed = True

    def before(self, group: Watched, operation: Operation) -> None:
        """Adds an operation, instead of the oldest one where there is no more room."""
        self._retire()
        numbers, frames = self._groups[group.group_name], self._frames()
        numbers.p2p += operation.is_message and not numbers.in_batch
        self._last = []
        library = _library(group, operation.ins or operation.outs)
        for shown in _recorded(group, operation, library):
            numbers.operations += shown.name not in _APIECE
            about = self._about(group, library, shown, operation.is_message)
            is_part = shown.is_part or (operation.is_message and numbers.in_batch)
            self._last.append(_Entry(about, frames, numbers, is_part))
        self._entries.extend(self._last)
        self._open.extend(self._last)

    def after(self, operation: Operation, work: Work) -> None:
        """Notes the work of the operation that was added last."""
        self._last_work = work
        for entry in self._last:
            entry.work = None if entry.is_part else work

    def batch(self, group: Watched, begins: bool) -> None:
        """Messages in one go have one number, and after them comes an entry for all, where the backend is nccl: gloo
        issues each by itself."""
        library = _library(group, ())
        if library == Backend.GLOO:
            return
        numbers = self._groups[group.group_name]
        if begins:
            numbers.p2p += 1
            numbers.in_batch = True
            return
        numbers.in_batch = False
        about = self._about(group, library, _Shown("coalesced"), True)
        entry = _Entry(about, self._frames(), numbers, work=self._last_work if self._last else None)
        self._entries.append(entry)
        self._open.append(entry)

    def reset(self) -> None:
        """Forgets what was recorded, and counts anew."""
        self._entries.clear()
        self._open.clear()
        self._recorded = 0

    def _retire(self) -> None:
        """Lets go of the works of those that have ended, from the oldest one."""
        while self._open and self._open[0].look():
            self._open.popleft()

    def _frames(self) -> Frames:
        places = _places()
        key = tuple([number for code, offset in places for number in (id(code), offset)])
        return self._calls.setdefault(key, places)

    def _about(self, group: Watched, library: str, shown: _Shown, is_message: bool) -> dict[str, Any]:
        numbers = self._groups[group.group_name]
        seq = group.collectives(library == Backend.GLOO) + (not is_message)
        if not is_message:
            numbers.status["last_enqueued_collective"] = seq
        self._recorded += 1
        return {
            "record_id": self._recorded - 1,
            "pg_id": numbers.number,
            "process_group": (group.group_name, group.group_desc),
            "thread_name": _thread_name(),
            "thread_id": str(runtime.current().ident),
            "collective_seq_id": seq,
            "p2p_seq_id": numbers.p2p,
            "op_id": numbers.operations,
            "profiling_name": f"{library}:{shown.name}",
            "time_created_ns": host_time() // _NANOSECOND,
            "input_sizes": shown.given.sizes,
            "input_dtypes": shown.given.types,
            "output_sizes": shown.received.sizes,
            "output_dtypes": shown.received.types,
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
            "comm_lib_version": comm_lib_version,
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
            if entry.began is not None and numbers.is_timed:
                status["last_started_collective"] = max(status["last_started_collective"], seq)
            if entry.ended is not None:
                status["last_completed_collective"] = max(status["last_completed_collective"], seq)
        return dict(status)

    def write(self, prefix: str) -> None:
        """Writes the rank's file, for fr_trace."""
        with open(f"{prefix}{self._rank}", "wb") as file:
            pickle.dump(self.dump(), file)


def _name(group: Watched, operation: Operation) -> str:
    """Returns what PyTorch's recorder calls it; a message names both sides by group rank."""
    peer = "?" if operation.peer < 0 else operation.peer
    if operation.name == "send":
        return f"send {group.rank()}->{peer}"
    if operation.name == "recv":
        return f"recv {group.rank()}<-{peer}"
    return OPS[operation.name].recorded


def _library(group: Watched, tensors: Sequence[Any]) -> str:
    """gloo, or nccl for what is not: readers know no other names."""
    if group.backend == Backend.GLOO:
        return Backend.GLOO
    on_host = bool(tensors) and not form_of(tensors[0]).on_sip
    return Backend.GLOO if on_host and Backend.GLOO in group.backend else Backend.NCCL


def _recorded(group: Watched, operation: Operation, library: str) -> list[_Shown]:
    """The entries of an operation: one. With a list of blocks of several sizes, one for each block, as NCCL does it,
    and one for them together."""
    op = OPS.get(operation.name)
    if op is not None and op.silent and library == Backend.NCCL:
        token = _Side([[1]], ["Float"])
        return [_Shown(_BARRIER, token, token)]
    if op is None or not op.apiece or library == Backend.GLOO:
        return [_shown(group, operation, library)]
    gathers = op.kind.gathers
    many, own = (operation.outs, operation.ins[0]) if gathers else (operation.ins, operation.outs[0])
    if len({form_of(t).shape for t in many}) < 2:
        return [_shown(group, operation, library)]
    each: list[_Shown] = []
    for rank, block in enumerate(many):
        other, side = _Side.of([own if rank == group.rank() else block]), _Side.of([block])
        each.append(
            _Shown("_broadcast_oop", other, side, True) if gathers else _Shown("_reduce_oop", side, other, True)
        )
    return [*each, _Shown(op.apiece)]


def _shown(group: Watched, operation: Operation, library: str) -> _Shown:
    """The one entry of an operation. In place it has its tensors on both sides, and so has NCCL's message."""
    name = _name(group, operation)
    if operation.is_silent:
        return _Shown(name)
    if operation.in_place or (operation.is_message and library == Backend.NCCL):
        both = _Side.of(operation.ins or operation.outs, _are_apart(operation))
        return _Shown(name, both, both)
    given, received = (_Side.of(side, _are_apart(operation)) for side in (operation.ins, operation.outs))
    return _Shown(name, given, received)


def _are_apart(operation: Operation) -> bool:
    """Reports whether its tensors are several, and not the blocks of one."""
    return not operation.is_message and OPS[operation.name].several


def _is_timing_asked_for() -> bool:
    """Reports whether entries say when devices begin: PyTorch's do when asked to, these unless asked not to."""
    return os.environ.get(_TIMING, "1").upper() in TRUE


def _thread_name() -> str:
    """The name of the running thread by which the system knows it."""
    name = ctypes.create_string_buffer(_NAME)
    if _naming is None or _naming(ctypes.c_void_p(threading.get_ident()), name, _NAME):
        return "python"
    return name.value.decode(errors="replace")


_NAME = 64  # bytes of a thread's name, at most
_naming = getattr(ctypes.CDLL(None), "pthread_getname_np", None)


def _places() -> Frames:
    """Returns the places of the program's call, without this package's frames."""
    frame: types.FrameType | None = sys._getframe(1)
    places: list[tuple[types.CodeType, int]] = []
    while frame is not None and len(places) < _FRAMES:
        if not frame.f_code.co_filename.startswith(runtime.PACKAGE):
            places.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(places)


def _frame(code: types.CodeType, offset: int) -> dict[str, Any]:
    """A place, as PyTorch shows it."""
    line = next((n for begin, end, n in code.co_lines() if n is not None and begin <= offset < end), 0)
    return {"name": code.co_name, "filename": code.co_filename, "line": line}
