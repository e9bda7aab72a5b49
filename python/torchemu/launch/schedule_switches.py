"""Switches: places where a schedule did not decide first in, first out, as the core has them and as users give them
back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

_HOSTS = ("", "~", "+")
"""Marks of how slow hosts had been, by the core's number: not, for the present moment, and for long."""

_SWITCH = re.compile(r"(\d+):(\d+)([+~]?)")


class Switch(NamedTuple):
    """A decision of a schedule.

    Attributes:
        spawn: the number of the spawn, of those that the program has made.
        pick: the number of the decision in the spawn.
        place: who ran of those who could, by their order.
        hosts: how slow hosts had been.
    """

    spawn: int
    pick: int
    place: int
    hosts: int = 0


def written(switches: Iterable[Switch], spawns: int) -> str:
    """Writes the switches of so many spawns: "3:1,7:0+;;2:1" are two of the first and one of the third."""
    parts: list[list[str]] = [[] for _ in range(spawns)]
    for switch in switches:
        parts[switch.spawn].append(f"{switch.pick}:{switch.place}{_HOSTS[switch.hosts]}")
    return ";".join(map(",".join, parts))


def read(text: str) -> list[Switch]:
    """Reads what written has written.

    Raises:
        ValueError: it is something else.
    """
    found = []
    for spawn, part in enumerate(text.split(";")):
        for switch in part.split(",") if part else ():
            match = _SWITCH.fullmatch(switch)
            if match is None:
                raise ValueError(f"{text!r}: switches are such as 3:1,7:0+, as --explore prints them")
            found.append(Switch(spawn, int(match[1]), int(match[2]), _HOSTS.index(match[3])))
    return found


def rows(numbers: Iterable[int], size: int) -> Iterator[tuple[int, ...]]:
    """Cuts a list of the core's into rows of so many."""
    each = iter(numbers)
    return zip(*[each] * size, strict=True)


def numbers(switches: Iterable[Switch]) -> Sequence[int]:
    """Lists the switches as the core takes them."""
    return [number for switch in switches for number in switch]
