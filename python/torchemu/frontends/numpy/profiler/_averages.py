"""Events that a profile has recorded, as lists and as sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

_HOST = ("cpu_op", "cuda_runtime", "user_annotation")
_DEVICE = ("kernel", "gpu_memcpy")


@dataclass(eq=False)
class FunctionEvent:
    """Something that the host or the device did; times in microseconds.

    Attributes:
        name: the operator's, the driver's call, the program's own name, or the kernel's.
        device_type: "CPU" for what the host did, "CUDA" for what the device did.
        start, end: when.
        args: what the trace says about it.
        cpu_parent: what it is a part of, on the host.
        cpu_children: its parts.
        kernels: what the device did because of it itself.
    """

    name: str
    device_type: str
    start: float
    end: float
    args: dict[str, Any] = field(default_factory=dict)
    cpu_parent: FunctionEvent | None = None
    cpu_children: list[FunctionEvent] = field(default_factory=list)
    kernels: list[FunctionEvent] = field(default_factory=list)
    count: int = 1

    @property
    def key(self) -> str:
        """Returns what its times are added up by."""
        return self.name

    @property
    def cpu_time_total(self) -> float:
        """Returns how long the host was in it."""
        return self.end - self.start if self.device_type == "CPU" else 0.0

    @property
    def self_cpu_time_total(self) -> float:
        """Returns how long the host was in it, and in none of its parts."""
        return max(0.0, self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children))

    @property
    def device_time_total(self) -> float:
        """Returns how long the device was in what it, or a part of it, called for; or in it, if the device did it."""
        if self.device_type == "CUDA":
            return self.end - self.start
        return sum(k.device_time_total for k in self.kernels) + sum(c.device_time_total for c in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:
        """The same, without its parts."""
        return self.device_time_total - sum(c.device_time_total for c in self.cpu_children)

    cuda_time_total, self_cuda_time_total = device_time_total, self_device_time_total


@dataclass(eq=False)
class FunctionEventAvg:
    """All events of a name; times in microseconds, see FunctionEvent."""

    key: str
    device_type: str
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    device_time_total: float = 0.0
    self_device_time_total: float = 0.0

    def add(self, event: FunctionEvent | FunctionEventAvg, nested: bool = False) -> None:
        """Adds an event; nested: its times are in those of another one of the name already."""
        self.count += event.count
        self.self_cpu_time_total += event.self_cpu_time_total
        self.self_device_time_total += event.self_device_time_total
        if not nested:
            self.cpu_time_total += event.cpu_time_total
            self.device_time_total += event.device_time_total

    @property
    def cpu_time(self) -> float:
        """The mean of cpu_time_total."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """The mean of device_time_total."""
        return self.device_time_total / self.count if self.count else 0.0


class EventList(list[Any]):
    """Events, or averages of them."""

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Sums over all events of a name, of the host and of the device apart; the longest on the host first."""
        sums: dict[tuple[str, str], FunctionEventAvg] = {}
        for event in self:
            key = (event.device_type, event.key)
            if key not in sums:
                sums[key] = FunctionEventAvg(event.key, event.device_type)
            sums[key].add(event, nested=_within_its_like(event))
        return EventList(sums.values())

    @property
    def self_cpu_time_total(self) -> float:
        """Returns how long the host was in all of it."""
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        **_: Any,
    ) -> str:
        """A table of the events.

        Args:
            sort_by: the attribute to sort by, the largest first, such as "device_time_total" or "count".
            row_limit: how many rows; -1 for all.
            max_name_column_width: longer names are cut.
            header: stands above.
            top_level_events_only: leave out what is a part of something else.
        """
        from torchemu.frontends.numpy.profiler._table import table

        rows = [e for e in self if not (top_level_events_only and getattr(e, "cpu_parent", None))]
        return table(EventList(rows), self, sort_by, row_limit, max_name_column_width, header)

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """Returns the table, for notebooks."""
        from torchemu.frontends.numpy.profiler._table import as_html

        return as_html(self)


def _within_its_like(event: FunctionEvent) -> bool:
    parent = event.cpu_parent
    while parent is not None:
        if parent.name == event.name:
            return True
        parent = parent.cpu_parent
    return False


def events_of(document: dict[str, Any]) -> EventList:
    """The events of a trace in Kineto's shape, in the order of time."""
    bars = [e for e in document["traceEvents"] if e["ph"] == "X"]
    host = [_event(e, "CPU") for e in bars if e["cat"] in _HOST]
    device = [_event(e, "CUDA") for e in bars if e["cat"] in _DEVICE]
    _nest(host)
    _correlate(host, device)
    return EventList(sorted([*host, *device], key=lambda e: (e.start, -e.end)))


def _event(bar: dict[str, Any], device_type: str) -> FunctionEvent:
    return FunctionEvent(bar["name"], device_type, bar["ts"], bar["ts"] + bar["dur"], bar.get("args", {}))


def _nest(host: Sequence[FunctionEvent]) -> None:
    """Finds what is a part of what. The trace has what is around others before them."""
    around: list[FunctionEvent] = []
    for event in host:
        while around and (around[-1].end <= event.start or around[-1].end < event.end - 1e-6):
            around.pop()
        if around:
            event.cpu_parent = around[-1]
            around[-1].cpu_children.append(event)
        around.append(event)


def _correlate(host: Iterable[FunctionEvent], device: Iterable[FunctionEvent]) -> None:
    """Gives what the device did to the operator that called the driver for it."""
    calls = {e.args["correlation"]: e.cpu_parent or e for e in host if "correlation" in e.args}
    for event in device:
        call = calls.get(event.args["correlation"])
        if call is not None:
            call.kernels.append(event)
