"""Sums over the traces of a run."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from torchemu.c10d.ops import OPS
from torchemu.report._load import Bar, Rank, Run

Interval = tuple[float, float]


@dataclass(frozen=True)
class Shares:
    """The time of a rank's device in the run, by use, in microseconds.

    Attributes:
        compute: it ran kernels.
        copy: it copied from or to its host, and ran none.
        overlapped: it communicated while it ran kernels or copied.
        waiting: it was ready to communicate, and had nothing else to do, while another rank was not ready.
        transfer: it communicated with all ranks ready, and did nothing else.
        idle: it did nothing.
    """

    rank: int
    compute: float
    copy: float
    overlapped: float
    waiting: float
    transfer: float
    idle: float

    @property
    def exposed(self) -> float:
        """Communication that nothing hides."""
        return self.waiting + self.transfer

    @property
    def communication(self) -> float:
        """All of it."""
        return self.overlapped + self.exposed


@dataclass(frozen=True)
class Collective:
    """One collective, over all its ranks; times in microseconds.

    Attributes:
        key: tells it from all others.
        first: when the first rank was ready for it.
        start: when the last one was.
        size: bytes.
        busbw: bus bandwidth in GB/s, as nccl-tests defines it.
    """

    key: tuple[str, int]
    name: str
    group: str
    number: int
    algorithm: str
    ranks: int
    size: int
    first: float
    start: float
    end: float
    busbw: float
    site: str

    @property
    def time(self) -> float:
        """From the last rank's arrival to the last one's end."""
        return self.end - self.start

    @property
    def skew(self) -> float:
        """Returns the time for which the first rank waited for the last one."""
        return self.start - self.first


@dataclass(frozen=True)
class Operation:
    """All collectives of a name; time in microseconds, size in bytes."""

    name: str
    calls: int
    time: float
    size: int
    skew: float


@dataclass(frozen=True)
class KernelSum:
    """All calls of a kernel, on all ranks; times in microseconds.

    Attributes:
        size: bytes of memory traffic.
        ops: operations.
    """

    name: str
    calls: int
    time: float
    longest: float
    size: int
    ops: int


@dataclass(frozen=True)
class Link:
    """The load of a link."""

    name: str
    source: str
    target: str
    bandwidth: int  # bytes per second
    size: int
    share: float  # of what it could have carried in the time of the run


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The same times, apart and in order."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def length(intervals: Iterable[Interval]) -> float:
    """Returns the length of times together; they are apart."""
    return sum(end - start for start, end in intervals)


def common(a: Sequence[Interval], b: Sequence[Interval]) -> float:
    """Returns the length of the times that are in both; each is apart and in order."""
    total, i, j = 0.0, 0, 0
    while i < len(a) and j < len(b):
        total += max(0.0, min(a[i][1], b[j][1]) - max(a[i][0], b[j][0]))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return total


@dataclass
class Meeting:
    """A collective or a message as its ranks take part in it.

    Attributes:
        parts: the bars, with the ranks' numbers.
        ready: when the last rank was.
    """

    parts: list[tuple[int, Bar]] = field(default_factory=list)
    ready: float = -math.inf

    def add(self, rank: int, bar: Bar) -> None:
        """Adds a rank's part."""
        self.parts.append((rank, bar))
        self.ready = max(self.ready, bar.start)


def meetings(run: Run) -> dict[int, Meeting]:
    """Returns what each bar of a collective or message is a part of, by the bar's id()."""
    together: dict[object, Meeting] = defaultdict(Meeting)
    counts: dict[object, int] = defaultdict(int)
    for rank in run.ranks:
        for bar in rank.bars:
            if bar.communicates:
                together[bar.key or _message(bar, rank, counts)].add(rank.number, bar)
    return {id(bar): meeting for meeting in together.values() for _, bar in meeting.parts}


def _message(bar: Bar, rank: Rank, counts: dict[object, int]) -> object:
    """Returns a key that the two bars of a message share: of equal ones the first send belongs to the first receive."""
    args = bar.args
    pair = (args.get("Src Rank"), args.get("Dst Rank"), args.get("tag"), args.get("Process Group Name"))
    side = (rank.number, args.get("Collective name"), pair)
    counts[side] += 1
    return (*pair, counts[side])


def shares(run: Run) -> list[Shares]:
    """Returns those of each rank."""
    found = meetings(run)
    return [_shares(rank, run.duration, found) for rank in run.ranks]


def _shares(rank: Rank, duration: float, found: dict[int, Meeting]) -> Shares:
    kinds: dict[str, list[Interval]] = defaultdict(list)
    for bar in rank.bars:
        kinds["communication" if bar.communicates else bar.kind].append((bar.start, bar.end))
        if bar.communicates:
            kinds["transfer"].append((min(found[id(bar)].ready, bar.end), bar.end))
    compute, communication, transfer = (union(kinds[k]) for k in ("compute", "communication", "transfer"))
    busy = union([*compute, *kinds["copy"]])
    overlapped, hidden = common(communication, busy), common(transfer, busy)
    everything = length(union([*busy, *communication]))
    exposed, moving = length(communication) - overlapped, length(transfer) - hidden
    return Shares(
        rank.number,
        compute=length(compute),
        copy=length(busy) - length(compute),
        overlapped=overlapped,
        waiting=max(0.0, exposed - moving),
        transfer=min(exposed, moving),
        idle=max(0.0, duration - everything),
    )


def kernels(run: Run) -> list[KernelSum]:
    """Sums over the calls of each kernel and copy, the longest first."""
    by_name: dict[str, list[Bar]] = defaultdict(list)
    for rank in run.ranks:
        for bar in rank.bars:
            if not bar.communicates:
                by_name[bar.name].append(bar)
    sums = [
        KernelSum(
            name,
            len(bars),
            sum(b.end - b.start for b in bars),
            max(b.end - b.start for b in bars),
            sum(b.args.get("memory traffic", b.args.get("bytes", 0)) for b in bars),
            sum(b.args.get("operations", 0) for b in bars),
        )
        for name, bars in by_name.items()
    ]
    return sorted(sums, key=lambda k: (-k.time, k.name))


def collectives(run: Run) -> list[Collective]:
    """All of them, in the order of their ends."""
    parts: dict[tuple[str, int], list[Bar]] = defaultdict(list)
    for rank in run.ranks:
        for bar in rank.bars:
            if bar.key is not None:
                parts[bar.key].append(bar)
    return sorted((_collective(bars) for bars in parts.values()), key=lambda c: (c.end, c.group, c.number))


def _collective(bars: Sequence[Bar]) -> Collective:
    args = bars[0].args
    starts = [bar.start for bar in bars]
    start, end = max(starts), max(bar.end for bar in bars)
    ranks, size = args.get("Group size", len(bars)), args.get("bytes", 0)
    algbw = size / (end - start) / 1e3 if end > start else 0.0
    assert bars[0].key is not None
    return Collective(
        key=bars[0].key,
        name=bars[0].name,
        group=args.get("Process Group Description") or args.get("Process Group Name", ""),
        number=args.get("Seq", 0),
        algorithm=args.get("algorithm", ""),
        ranks=ranks,
        size=size,
        first=min(starts),
        start=start,
        end=end,
        busbw=algbw * _bus(bars[0].name, ranks),
        site=next((bar.site for bar in bars if bar.site), ""),
    )


def _bus(name: str, ranks: int) -> float:
    op = OPS.get(name) or OPS.get(name.removesuffix("_coalesced"))
    return (ranks - 1) / ranks if op is None else op.kind.bus_bandwidth(ranks)


def operations(found: Iterable[Collective]) -> list[Operation]:
    """Sums over the collectives of each name, the longest first."""
    by_name: dict[str, list[Collective]] = defaultdict(list)
    for c in found:
        by_name[c.name].append(c)
    sums = [
        Operation(name, len(all_), sum(c.time for c in all_), sum(c.size for c in all_), sum(c.skew for c in all_))
        for name, all_ in by_name.items()
    ]
    return sorted(sums, key=lambda o: (-o.time, o.name))


def links(run: Run) -> list[Link]:
    """All that are known, the busiest first, and those that are as busy in the fabric's order."""
    if run.fabric is None:
        return []
    seconds = max(run.duration, 1e-6) / 1e6
    found = [
        Link(x["name"], x["from"], x["to"], x["bandwidth"], x["bytes"], x["bytes"] / (x["bandwidth"] * seconds))
        for x in run.fabric["links"]
    ]
    return sorted(found, key=lambda link: -link.share)
