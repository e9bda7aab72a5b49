"""Programs with marks: the text of the right one, and of each with a planted defect.

A mark is a comment at the end of a line. ``#- d`` says that the line is missing in the program with defect d, ``#+ d``
that it is there only, and ``#! d`` that a report of d names it; several defects are separated by commas, and ``#! *``
is of all. What is missing leaves a line behind that does nothing, so that lines keep their numbers. In C++ marks begin
with ``//``.
"""

from __future__ import annotations

import re

_MARK = re.compile(r"(?:#|//)([-+!]) ([^#/]*?)(?=\s*(?:#|//)[-+!] |$)")


def _marks(line: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {"-": set(), "+": set(), "!": set()}
    for kind, names in _MARK.findall(line):
        found[kind] |= {name.strip() for name in names.split(",")}
    return found


def defects(text: str) -> list[str]:
    """Returns the names of the defects that can be planted, in the order of their first marks."""
    names = [
        name
        for line in text.splitlines()
        for kind, given in _MARK.findall(line)
        if kind in "-+"
        for name in map(str.strip, given.split(","))
    ]
    return list(dict.fromkeys(names))


def planted(text: str, defect: str | None = None, nothing: str = "pass") -> str:
    """Returns the program with a defect, or the right one."""
    lines = []
    for line in text.splitlines():
        marks = _marks(line)
        gone = defect in marks["-"] or (marks["+"] and defect not in marks["+"])
        bare = re.split(r"\s*(?:#|//)[-+!] ", line)[0]
        indent = line[: len(line) - len(line.lstrip())]
        lines.append(indent + nothing if gone else bare)
    return "\n".join(lines) + "\n"


def named(text: str, defect: str) -> set[int]:
    """Returns the numbers of the lines that a report of a defect names."""
    return {n for n, line in enumerate(text.splitlines(), 1) if {defect, "*"} & _marks(line)["!"]}


_KINDS = re.compile(
    "unordered read:|unordered writes:|read of unwritten memory:|signal overtakes its data:|window reused without|"
    "signal row reused|EQ wait overshot:|traffic after free:|wait that other signals|scope too narrow:|"
    "uses a tensor of an operation|reads on one stream|reach beyond window"
)


def reports(said: str, kind: str = "py") -> list[set[int]]:
    """Returns the numbers of the lines that each report names, the first report first."""
    said = said.partition("\n======")[0]
    starts = [found.start() for found in _KINDS.finditer(said)]
    if not starts:
        return []
    parts = [said[lo:hi].partition("missing:")[0] for lo, hi in zip(starts, [*starts[1:], len(said)], strict=True)]
    return [{int(n) for n in re.findall(rf"program\.{kind}:(\d+)", part)} for part in parts]
