"""Scripts: programs as text that any Python with a torch can run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fuzz.kinds import KINDS
from fuzz.programs import Program, Step


@dataclass(frozen=True)
class Script:
    """A program as text.

    Attributes:
        text: the script.
        lines: (step, line) of each line that calls something for a step, in order. Where one rank does something else,
            they are that rank's.
    """

    text: str
    lines: tuple[tuple[int, int], ...]


@cache
def _prelude() -> str:
    return Path(__file__).with_name("prelude.py").read_text()


def script_of(program: Program) -> Script:
    """Returns a program's script."""
    head = _prelude()
    if program.device:
        head = head.replace("ON_DEVICES = False", "ON_DEVICES = True ")
    text = [f"# torchrun --nproc-per-node {program.size} FILE, or torchemu run; made of seed {program.seed}", head]
    first = "\n".join(text).count("\n") + 2
    body = list(_body(program))
    lines = tuple((step, first + at) for at, (step, _) in enumerate(body) if step is not None)
    return Script("\n".join([*text, *[line for _, line in body], ""]), lines)


_ENDS = {"exception": 'raise ValueError("a fault")', "dead": "os.kill(os.getpid(), 9)"}
"""Faults by which a rank ends, and what it does."""

Lines = list[tuple[int | None, str]]
"""Lines, each with the step of which it calls something, if it does."""


def _body(program: Program) -> Iterator[tuple[int | None, str]]:
    ends: dict[int, Lines] = {}
    made: set[tuple[int, ...]] = set()
    for i, step in enumerate(program.steps):
        if step.group and step.group not in made:
            made.add(step.group)
            yield None, f"{_group(step)} = dist.new_group({list(step.group)})"
        start, end = _parts(program, i)
        yield from start
        ends.setdefault(i + (step.wait or 0), []).extend(end)
        yield from ends.pop(i, ())
    for at in sorted(ends):
        yield from ends[at]
    yield from _end(program)


def _end(program: Program) -> Iterator[tuple[int | None, str]]:
    if program.joins:
        yield len(program.steps), "dist.barrier()"
    yield None, 'if __name__ == "__main__":'
    yield None, "    print(*results(), sep='\\n')"
    yield None, "dist.destroy_process_group()"


def _parts(program: Program, i: int) -> tuple[Lines, Lines]:
    """Returns the lines that begin a step, and those that end it."""
    step, fault = program.steps[i], program.fault
    if fault is None or i not in (instead := dict(fault.instead)):
        return _step(program, i, step, f"rank in {program.callers(step)}")
    right = _step(program, i, step, f"rank in {program.callers(step)} and rank != {fault.rank}")
    start, end = [[(None, text) for _, text in lines] for lines in right]
    other = instead[i]
    if other is not None:
        wrong = _step(program, i, other, f"rank == {fault.rank}", fault.name == "unwaited")
        return start + wrong[0], end + wrong[1]
    if fault.name in _ENDS:
        start += [(None, f"if rank == {fault.rank}:"), (i, f"    {_ENDS[fault.name]}")]
    return start, end


def _step(program: Program, i: int, step: Step, who: str, unwaited: bool = False) -> tuple[Lines, Lines]:
    """Returns the lines of a step for those ranks; unwaited: its result is looked at before the wait."""
    kind, fields = KINDS[step.kind], _fields(program, i, step)
    asynchronous, got = step.wait is not None or step.kind == "ring", kind.keep.format(**fields)
    start: Lines = [(None, f"if {who}:"), *[(None, "    " + line.format(**fields)) for line in kind.make]]
    inner = "    "
    if step.stream is not None:
        start.append((None, f"    with on({step.stream}):"))
        inner += "    "
    start += [
        (i if "dist." in line or "store." in line else None, inner + line)
        for line in _calls(step, fields, asynchronous)
    ]
    if unwaited:
        start.append((i, f"    keep({i}, {got} * 2)"))
    end: Lines = [(i, f"    w{i}.wait()")] if asynchronous else []
    if kind.keep != "None":
        end += [(i, f"    {function}") for function in _uses(i, step, got)]
    return start, [(None, f"if {who}:"), *end] if end else []


def _uses(i: int, step: Step, got: str) -> list[str]:
    return [f"keep({i}, {got})", *[f"feed({got})"] * step.feeds]


def _calls(step: Step, fields: dict[str, object], asynchronous: bool) -> list[str]:
    kind = KINDS[step.kind]
    texts = [text.format(**fields) for text in (kind.call, kind.other) if text]
    if asynchronous:
        texts = [f"w{fields['i']} = {text}" for text in texts]
    if not kind.pair:
        return texts
    if asynchronous:
        texts = [text.replace("dist.send", "dist.isend").replace("dist.recv", "dist.irecv") for text in texts]
    return [f"if rank == {fields['root']}:", "    " + texts[0], "else:", "    " + texts[1]]


def _group(step: Step) -> str:
    return "g" + "_".join(map(str, step.group)) if step.group else "None"


def _fields(program: Program, i: int, step: Step) -> dict[str, object]:
    members = program.members(step)
    n, group = len(members), _group(step)
    many = (n * step.shape[0], *step.shape[1:]) if step.shape else (n,)
    about = f'"{step.dtype}", {step.shape}, "{step.layout}"'
    abouts = f'"{step.dtype}", {many}, "{step.layout}"'
    place = f"{members}.index(rank)"
    return {
        "i": i,
        "op": step.op,
        "n": n,
        "me": place,
        "salt": step.salt,
        "dtype": step.dtype,
        "root": members[step.root % n],
        "next": members[(step.root + 1) % n],
        "after": f"{members}[({place} + 1) % {n}]",
        "before": f"{members}[{place} - 1]",
        "tag": 1000 + i,
        "group": group,
        "more": f"group={group}" + (", async_op=True" if step.wait is not None else ""),
        "data": f"data({about}, {step.salt})",
        "key": f"{program.seed} {i}",
        "data_more": f"data({about}, {step.salt} + 1)",
        "data_k": f"data({about}, {step.salt} + k)",
        "datas": f"data({abouts}, {step.salt})",
        "blank": f"blank({about})",
        "blanks": f"blank({abouts})",
    }
