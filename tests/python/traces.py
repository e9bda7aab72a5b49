"""Reading traces back, with decoders that know nothing of how torchemu writes them."""

from __future__ import annotations

import gzip
import json
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any


def kineto(file: Path) -> dict[str, Any]:
    """A rank's file; times are exact decimals of a microsecond."""
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return json.loads(text, parse_float=Decimal)


def bars(document: dict[str, Any], *categories: str) -> list[dict[str, Any]]:
    """The bars of these categories; of all, without any."""
    return [e for e in document["traceEvents"] if e["ph"] == "X" and (not categories or e["cat"] in categories)]


def interval(bar: dict[str, Any]) -> tuple[int, int]:
    """When it is, in picoseconds."""
    start, length = (int(Decimal(bar[key]) * 1_000_000) for key in ("ts", "dur"))
    return start, start + length


def assert_nested(intervals: Iterable[tuple[int, int]]) -> None:
    """Each is within another one or apart from it."""
    around: list[tuple[int, int]] = []
    for start, end in sorted(intervals, key=lambda i: (i[0], -i[1])):
        while around and around[-1][1] <= start:
            around.pop()
        assert not around or end <= around[-1][1], f"{(start, end)} sticks out of {around[-1]}"
        around.append((start, end))


# -- Perfetto's protocol buffers


def fields(text: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message, by number."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = text[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(text):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint()
        elif kind == 1:
            yield number, text[at : at + 8]
            at += 8
        else:
            assert kind == 2, f"field {number} is of kind {kind}"
            size = varint()
            assert at + size <= len(text)
            yield number, text[at : at + size]
            at += size


def message(text: bytes) -> dict[int, list[Any]]:
    """The fields of a message, in lists."""
    found: dict[int, list[Any]] = defaultdict(list)
    for number, value in fields(text):
        found[number].append(value)
    return found


@dataclass
class Slice:
    """A bar; times in nanoseconds."""

    track: str
    name: str
    start: int
    end: int = -1
    args: dict[str, Any] = field(default_factory=dict)
    flows: list[int] = field(default_factory=list)


@dataclass
class Perfetto:
    """The content of a file: bars, and the values of counters at times, by the full names of their tracks."""

    slices: list[Slice] = field(default_factory=list)
    counters: dict[str, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))


def perfetto(file: Path) -> Perfetto:
    """Reads a file, and checks what Perfetto asks of one: names come before their use, and bars are nested."""
    found = Perfetto()
    tracks: dict[int, str] = {}
    names: dict[int, dict[int, str]] = {2: {}, 3: {}}  # of events, of arguments
    around: dict[int, list[Slice]] = defaultdict(list)
    last: dict[int, int] = defaultdict(int)
    for number, text in fields(file.read_bytes()):
        assert number == 1
        packet = message(text)
        assert packet[10] == [1]
        if 60 in packet:
            _track(packet[60][0], tracks)
            continue
        for interned in packet[12]:
            for kind, entry in fields(interned):
                if kind in names:
                    one = message(entry)
                    names[kind][one[1][0]] = one[2][0].decode()
        event, at = message(packet[11][0]), packet[8][0]
        (track,) = event[11]
        assert at >= last[track]
        last[track] = at
        _event(found, event, at, tracks[track], around[track], names)
    assert not any(around.values())
    return found


def _track(text: bytes, tracks: dict[int, str]) -> None:
    track = message(text)
    name = b"".join(track[2]).decode()
    for process in track[3]:
        name = message(process)[6][0].decode()
    for thread in track[4]:
        name = message(thread)[5][0].decode()
    for parent in track[5]:
        name = f"{tracks[parent]}/{name}"
    assert track[1][0] not in tracks
    tracks[track[1][0]] = name


def _event(
    found: Perfetto,
    event: dict[int, list[Any]],
    at: int,
    track: str,
    around: list[Slice],
    names: dict[int, dict[int, str]],
) -> None:
    (kind,) = event[9]
    if kind == 1:
        args = {}
        for annotation in event[4]:
            one = message(annotation)
            (key,) = one.pop(1)
            ((number, (value,)),) = one.items()
            args[names[3][key]] = {4: lambda v: v, 5: lambda v: struct.unpack("<d", v)[0], 6: bytes.decode}[number](
                value
            )
        flows = [struct.unpack("<Q", f)[0] for f in event[47] + event[48]]
        around.append(Slice(track, names[2][event[10][0]], at, args=args, flows=flows))
    elif kind == 2:
        bar = around.pop()
        bar.end = at
        found.slices.append(bar)
    else:
        assert kind == 4
        found.counters[track].append((at, struct.unpack("<d", event[44][0])[0]))
