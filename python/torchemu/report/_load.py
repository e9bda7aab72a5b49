"""Reading a folder of traces."""

from __future__ import annotations

import gzip
import io
import json
import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchemu.errors import CommandError
from torchemu.profile.run import RUN_FILE

_LEAST = 1 << 26
_MOST_TIMES = 200
"""So many times its size a packed trace may become, and so many bytes in any case."""


class ReportError(CommandError):
    """There is nothing to report on; the text says why."""


@dataclass(frozen=True)
class Bar:
    """Something that a rank's device did; times in simulated microseconds.

    Attributes:
        kind: compute, copy, collective or message; of a host, host or wait; of a collective's algorithm, step.
        name: the kernel's, or the operation's as the program called it; of a wait, what for.
        track: the number of the stream.
        key: of a collective, what its ranks have in common: group and number.
        args: what the trace says about it.
        site: the place in the program.
    """

    kind: str
    name: str
    track: int
    start: float
    end: float
    key: tuple[str, int] | None = None
    args: dict[str, Any] = field(default_factory=dict)
    site: str = ""

    @property
    def communicates(self) -> bool:
        """Reports whether it is between ranks."""
        return self.kind in ("collective", "message")


@dataclass(frozen=True)
class Annotation:
    """A name that the program gave to a time of its host."""

    name: str
    start: float
    end: float


@dataclass
class Rank:
    """The record of one rank.

    Attributes:
        bars: what its device did.
        host: what its host did: calls, of kind host, and waits, of kind wait.
        steps: of the algorithms of collectives, those that it sent.
        rows: the names of streams, groups and messages by their numbers, see Bar.track.
        memory: bytes that the program had in use, each from a time on.
    """

    number: int
    bars: list[Bar]
    annotations: list[Annotation]
    host: list[Bar] = field(default_factory=list)
    steps: list[Bar] = field(default_factory=list)
    rows: dict[int, str] = field(default_factory=dict)
    memory: list[tuple[float, float]] = field(default_factory=list)


@dataclass
class Run:
    """All that is known of a run; times in simulated microseconds.

    Attributes:
        fabric: what RUN_FILE has; None without one.
    """

    name: str
    ranks: list[Rank]
    fabric: dict[str, Any] | None

    def __post_init__(self) -> None:
        times = [t for rank in self.ranks for bar in rank.bars for t in (bar.start, bar.end)]
        self.start, self.end = (min(times), max(times)) if times else (0.0, 0.0)

    @property
    def duration(self) -> float:
        """From the first thing that a device did to the end of the last one."""
        return self.end - self.start

    @property
    def topology(self) -> str:
        """Its name; empty when not known."""
        return self.fabric["topology"] if self.fabric else ""

    @property
    def failure(self) -> str:
        """Its failure in a line; empty where there was none, or nobody knows."""
        return self.fabric.get("failure", "") if self.fabric else ""

    @property
    def waits(self) -> list[dict[str, Any]]:
        """The waits of ranks where the run ended in a deadlock: dicts of "ranks", "on" and "needs"."""
        return self.fabric.get("waits", []) if self.fabric and self.failure else []

    @property
    def first(self) -> float:
        """The beginning of what is shown: hosts begin before devices do."""
        return min([self.start, *(bar.start for rank in self.ranks for bar in rank.host[:1])])

    @property
    def last(self) -> float:
        """The end of what is shown: of a run that hangs, when that was found."""
        return max(self.end, self.fabric["end"] / 1e6) if self.fabric and self.waits else self.end

    @property
    def is_empty(self) -> bool:
        """Reports whether no device did anything: then nobody knows how many ranks there were."""
        return not any(rank.bars for rank in self.ranks)


def load(folder: Path) -> Run:
    """Reads a folder.

    Raises:
        ReportError: it has no traces, or one of them is broken.
    """
    if not folder.is_dir():
        raise ReportError(f"{folder} is no folder: a report is of what torchemu run --trace DIR has written")
    files = sorted(f for f in folder.iterdir() if f.name.endswith((".json", ".json.gz")))
    ranks: dict[int, Rank] = {}
    for file in files:
        rank = _rank(file)
        if rank is None:
            continue
        if rank.number in ranks:
            raise ReportError(f"{folder} has two traces of rank {rank.number}: one of them is {file.name}")
        ranks[rank.number] = rank
    if not ranks:
        raise ReportError(f"{folder} has no traces of ranks: torchemu run --trace {folder} writes them")
    return Run(folder.resolve().name, [ranks[n] for n in sorted(ranks)], _fabric(folder / RUN_FILE))


def _fabric(file: Path) -> dict[str, Any] | None:
    try:
        about = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ReportError(f"{file} cannot be read: {error}; did the run that writes it end?") from None
    if not isinstance(about, dict):
        raise ReportError(f"{file} is not what torchemu run --trace writes")
    return {name: _shown(value) if isinstance(value, str) else value for name, value in about.items()}


def _rank(file: Path) -> Rank | None:
    """A rank's trace; None where the file is something else."""
    try:
        document = json.loads(_text(file))
    except (OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
        raise ReportError(f"{file} cannot be read: {_shown(str(error))}") from None
    about = document.get("distributedInfo") if isinstance(document, dict) else None
    if about is None or "traceEvents" not in document:
        return None
    try:
        return _parsed(about, document["traceEvents"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"{type(error).__name__}: {_shown(str(error))}"
        raise ReportError(f"{file} is no trace as torchemu run --trace writes them: {what}") from None


def _parsed(about: dict[str, Any], all_events: list[dict[str, Any]]) -> Rank:
    events = [e for e in all_events if e["ph"] == "X"]
    for event in events:
        if not all(isinstance(event[key], int | float) and math.isfinite(event[key]) for key in ("ts", "dur")):
            raise ValueError(f"an event from {event['ts']!r} on for {event['dur']!r}")
    sites = {e["args"]["External id"]: e["args"]["Call site"] for e in events if "Call site" in e.get("args", {})}
    number = int(about["rank"])
    return Rank(
        number,
        _bars(events, sites),
        _annotations(events),
        _host(events, sites),
        _steps(all_events),
        _rows(all_events, number),
        _memory(all_events),
    )


def _host(events: Iterable[dict[str, Any]], sites: dict[int, str]) -> list[Bar]:
    """The calls of a host and its waits, which follow one another."""
    bars = []
    for e in events:
        args, end = e.get("args", {}), e["ts"] + e["dur"]
        if e.get("cat") == "cpu_op":
            site = _shown(sites.get(args.get("External id", -1), ""))
            bars.append(Bar("host", _shown(e["name"]), 0, e["ts"], end, args=args, site=site))
        elif "waits for" in args and e.get("cat") == "cuda_runtime":
            bars.append(Bar("wait", _shown(args["waits for"]), 0, e["ts"], end))
    return sorted(bars, key=lambda bar: (bar.start, bar.end))


def _steps(events: Iterable[dict[str, Any]]) -> list[Bar]:
    """The steps of algorithms, each from its first byte until it has arrived."""
    bars = []
    for e in events:
        if e["ph"] == "b" and e.get("cat") == "step":
            args = e["args"]
            start, end = _finite(e["ts"]), _finite(args["arrived"])
            key = (_shown(args["Process Group Name"]), int(args["collective"]))
            bars.append(Bar("step", _shown(e["name"]), 0, start, end, key, args))
    return sorted(bars, key=lambda bar: (bar.start, bar.end))


def _rows(events: Iterable[dict[str, Any]], rank: int) -> dict[int, str]:
    return {
        int(e["tid"]): _shown(e["args"]["name"])
        for e in events
        if e["ph"] == "M" and e["name"] == "thread_name" and e["pid"] == rank
    }


def _memory(events: Iterable[dict[str, Any]]) -> list[tuple[float, float]]:
    found = [e for e in events if e["ph"] == "C" and e["name"] == "memory allocated"]
    return sorted((_finite(e["ts"]), _finite(e["args"]["bytes"])) for e in found)


def _finite(x: Any) -> float:
    if not isinstance(x, int | float) or not math.isfinite(x):
        raise ValueError(f"a number {x!r}")
    return float(x)


def _text(file: Path) -> bytes:
    """Returns what is in a file, unpacked.

    Raises:
        ValueError: a small file becomes too large.
    """
    data = file.read_bytes()
    if file.suffix != ".gz":
        return data
    most = max(_LEAST, _MOST_TIMES * len(data))
    with gzip.open(io.BytesIO(data)) as stream:
        text = stream.read(most + 1)
    if len(text) > most:
        raise ValueError(f"its {len(data)} bytes become more than {most}, which no trace does")
    return text


def _shown(text: str) -> str:
    """Returns a text of a trace as a terminal may show it: characters that cannot be printed are spelled out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _annotations(events: Iterable[dict[str, Any]]) -> list[Annotation]:
    return [
        Annotation(_shown(e["name"]), e["ts"], e["ts"] + e["dur"]) for e in events if e.get("cat") == "user_annotation"
    ]


def _bars(events: Iterable[dict[str, Any]], sites: dict[int, str]) -> list[Bar]:
    bars = [
        _bar(e, sites.get(e["args"].get("External id", -1), ""))
        for e in events
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    ]
    return sorted(bars, key=lambda bar: (bar.start, bar.end))


def _bar(event: dict[str, Any], site: str) -> Bar:
    args, end = event["args"], event["ts"] + event["dur"]
    name, kind, key = event["name"], "compute", None
    if event["cat"] != "kernel":
        kind = "copy"
    elif args.get("Collective name") in ("send", "recv"):
        kind, name = "message", args.get("operation", args["Collective name"])
    elif "Collective name" in args:
        kind, name = "collective", args.get("operation", args["Collective name"])
        key = (_shown(args.get("Process Group Name", "")), int(args.get("Seq", -1)))
    return Bar(kind, _shown(name), int(args.get("stream", event["tid"])), event["ts"], end, key, args, _shown(site))
