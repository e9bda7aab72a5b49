"""The flight recorder: what each rank issued last, in the schema that PyTorch's fr_trace reads. Times are simulated."""

from __future__ import annotations

import pickle
import sys
import types
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.c10d.backends import Backend
from torchemu.c10d.hooks import Operation, Watched, Watcher, attach
from torchemu.c10d.ops import OPS
from torchemu.runtime.buffer import form_of
from torchemu.runtime.waiting import host_time, milliseconds

if TYPE_CHECKING:
    from torchemu.c10d.work import Work

VERSION = "2.10"
"""Of the schema: PyTorch 2.11's."""

_FRAMES = 64  # of a call that are kept, from the innermost one
_NANOSECOND = 1000  # picoseconds

_APIECE = {op.apiece for op in OPS.values() if op.apiece}
"""What it calls those whose blocks may have several sizes, after its entries for the blocks."""

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

_Sides = tuple[list[Any], list[Any]]
"""What a rank gives, and what it receives."""

Frames = tuple[tuple[types.CodeType, int], ...]
"""The places of a call, from the innermost one: code, and offset in it."""


@dataclass(slots=True)
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
        begin, end = go.Began(self.work.core_number), go.Ended(self.work.core_number)
        self.began = begin // _NANOSECOND if begin >= 0 else None
        if end >= 0:
            self.ended, self.work = end // _NANOSECOND, None
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
    """The numbers of operations of each kind that a rank has issued to a group."""

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
    """The recorder of one rank keeps what it issued last, to any group.

    Args:
        size: how many operations to keep.
    """

    def __init__(self, size: int) -> None:
        self._rank = runtime.current().rank
        self._entries: deque[_Entry] = deque(maxlen=size)
        self._open: deque[_Entry] = deque(maxlen=size)  # those that may not have ended
        self._last: list[_Entry] = []  # of the operation that was added last
        self._recorded = 0
        self._groups: dict[str, _Numbers] = {}
        self._config: dict[str, dict[str, str]] = {}
        self._calls: dict[tuple[int, ...], Frames] = {}  # one of each: calls come from the same places again and again

    def join(self, group: Watched) -> None:
        """Records what the rank issues to a group from now on."""
        name = group.group_name
        self._config[name] = {"name": name, "desc": group.group_desc, "ranks": str(list(group.ranks))}
        self._groups.setdefault(name, _Numbers(len(self._groups)))
        attach(group, FlightRecorder, self)

    def before(self, group: Watched, operation: Operation) -> None:
        """Adds an operation, instead of the oldest one where there is no more room."""
        self._retire()
        numbers, frames = self._groups[group.group_name], self._frames()
        numbers.p2p += operation.is_message and not numbers.in_batch
        self._last = []
        for name, tensors in _recorded(group, operation):
            numbers.operations += name not in _APIECE
            self._last.append(_Entry(self._about(group, name, tensors, operation.is_message), frames))
        self._entries.extend(self._last)
        self._open.extend(self._last)

    def after(self, operation: Operation, work: Work) -> None:
        """Notes the work of the operation that was added last."""
        for entry in self._last:
            entry.work = work

    def batch(self, group: Watched, begins: bool) -> None:
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
        last = self._last[-1].work if self._last else None
        entry = _Entry(self._about(group, "coalesced", ([], []), True), self._frames(), last)
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

    def _frames(self) -> Frames:
        places = _places()
        key = tuple([number for code, offset in places for number in (id(code), offset)])
        return self._calls.setdefault(key, places)

    def _about(self, group: Watched, name: str, tensors: _Sides, is_message: bool) -> dict[str, Any]:
        numbers, (ins, outs) = self._groups[group.group_name], tensors
        library = _library(group, ins or outs)
        seq = group.collectives(library == Backend.GLOO) + (not is_message)
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
            "profiling_name": f"{library}:{name}",
            "time_created_ns": host_time() // _NANOSECOND,
            "input_sizes": _sizes(ins),
            "input_dtypes": _types(ins),
            "output_sizes": _sizes(outs),
            "output_dtypes": _types(outs),
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


def _recorded(group: Watched, operation: Operation) -> list[tuple[str, _Sides]]:
    """The entries of an operation: one. With a list of blocks of several sizes, one for each block, as NCCL does it,
    and one for them together."""
    op = OPS.get(operation.name)
    if op is None or not op.apiece or _library(group, operation.ins) == Backend.GLOO:
        return [(_name(group, operation), _sides(operation))]
    gathers = op.kind.gathers
    many, own = (operation.outs, operation.ins[0]) if gathers else (operation.ins, operation.outs[0])
    if len({form_of(t).shape for t in many}) < 2:
        return [(_name(group, operation), _sides(operation))]
    each: list[tuple[str, _Sides]] = []
    for rank, block in enumerate(many):
        other = own if rank == group.rank() else block
        each.append(("_broadcast_oop", ([other], [block])) if gathers else ("_reduce_oop", ([block], [other])))
    return [*each, (op.apiece, ([], []))]


def _sides(operation: Operation) -> _Sides:
    """Returns what the rank gives and receives: an operation in place has its tensors on both sides."""
    if operation.is_silent:
        return [], []
    if operation.in_place:
        both = list(operation.ins or operation.outs)
        return both, both
    return list(operation.ins), list(operation.outs)


def _sizes(tensors: Sequence[Any]) -> list[list[int]]:
    """Shapes; several equal ones as of one tensor that holds them all."""
    shapes = [list(form_of(t).shape) for t in tensors]
    if len(shapes) > 1 and all(shape == shapes[0] for shape in shapes):
        return [[len(shapes), *shapes[0]]]
    return shapes


def _types(tensors: Sequence[Any]) -> list[str]:
    """The dtype for each of _sizes."""
    return [_TYPES.get(name, name) for name in (form_of(t).dtype for t in tensors[: len(_sizes(tensors))])]


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
