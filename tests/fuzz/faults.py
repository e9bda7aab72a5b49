"""Faults: what one rank of a valid program does otherwise, so that the program is not valid any more."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from fuzz.kinds import KINDS
from fuzz.programs import Fault, Program, Step
from fuzz.scripts import Script


def faulty(program: Program, rng: random.Random) -> Program | None:
    """Returns the program with a fault in one rank, if there is a place for one."""
    found = [fault for name in FAULTS for fault in _faults(name, program)]
    if not found:
        return None
    name = rng.choice(sorted({fault.name for fault in found}))
    return replace(program, fault=rng.choice([fault for fault in found if fault.name == name]))


def _faults(name: str, program: Program) -> Iterator[Fault]:
    for i, step in enumerate(program.steps):
        if len(program.callers(step)) > 1:
            for rank in program.callers(step):
                for instead in FAULTS[name](program, i, rank):
                    yield Fault(name, rank, i, instead)


Instead = tuple[tuple[int, Step | None], ...]


def _nothing(program: Program, i: int, rank: int) -> Iterator[Instead]:
    yield ((i, None),)


def _left_out(program: Program, i: int, rank: int) -> Iterator[Instead]:
    """Yields nothing in place of the step, but where the rank only waits for another one's key: nobody misses that."""
    step, members = program.steps[i], program.members(program.steps[i])
    if step.kind != "store_compare_set" or rank == members[step.root % len(members)]:
        yield ((i, None),)


def _another(change: Callable[[Step], Step | None]) -> Callable[[Program, int, int], Iterator[Instead]]:
    def instead(program: Program, i: int, rank: int) -> Iterator[Instead]:
        step = program.steps[i]
        other = None if KINDS[step.kind].objects else change(step)
        if other is not None:
            yield ((i, other),)

    return instead


def _dtype(step: Step) -> Step:
    """Returns the step with a dtype of another size, so that even bytes do not fit."""
    return replace(step, dtype="int64" if step.dtype != "int64" and step.dtype != "float64" else "int32", op="SUM")


def _shape(step: Step) -> Step | None:
    """Returns the step with larger tensors."""
    if step.kind == "all_to_all_splits":
        return None
    return replace(step, shape=(step.shape[0] + 1, *step.shape[1:]) if step.shape and 0 not in step.shape else (9,))


def _op(step: Step) -> Step | None:
    if not KINDS[step.kind].reduces or step.dtype == "complex64":
        return None
    return replace(step, op="MAX" if step.op != "MAX" else "MIN")


def _splits(step: Step) -> Step | None:
    """Returns the step with one row more, or three fewer, from each member and for each."""
    return replace(step, salt=step.salt + 1) if step.kind == "all_to_all_splits" else None


def _kind(step: Step) -> Step | None:
    if KINDS[step.kind].pair or step.kind == "ring":
        return None
    return replace(step, kind="broadcast" if step.kind != "broadcast" else "all_reduce", op="SUM")


def _root(program: Program, i: int, rank: int) -> Iterator[Instead]:
    """Yields the step with another root, where none of the ranks that are one has nothing to give."""
    step = program.steps[i]
    if step.kind in ("broadcast", "reduce", "broadcast_object_list"):
        yield ((i, replace(step, root=(step.root + 1) % len(program.members(step)))),)


_BARRIERS = {"barrier", "store_add"}
"""Kinds of steps of which the other ranks see a barrier, and nothing else."""


def _swapped(program: Program, i: int, rank: int) -> Iterator[Instead]:
    """Yields the exchange of a step and the next one of its group, if others can tell the two apart."""
    step = program.steps[i]
    for j in range(i + 1, len(program.steps)):
        other = program.steps[j]
        if other.group == step.group and not KINDS[other.kind].pair and not KINDS[step.kind].pair:
            passes = (
                step.wait is not None and other.kind == "monitored_barrier"
            )  # what is under way does not hold it up
            alike = {step.kind, other.kind} <= _BARRIERS or step.kind == other.kind
            if not alike and "ring" not in (other.kind, step.kind) and not passes:
                yield (i, replace(other, wait=None)), (j, replace(step, wait=None))
            return


def _unwaited(program: Program, i: int, rank: int) -> Iterator[Instead]:
    step = program.steps[i]
    writes = step.kind in ("all_reduce", "broadcast", "all_gather_into_tensor", "reduce_scatter_tensor")
    if step.wait is not None and writes and 0 not in step.shape:
        members = program.members(step)
        if step.kind != "broadcast" or rank != members[step.root % len(members)]:
            yield ((i, step),)


FAULTS = {
    "skipped": _left_out,
    "exception": _nothing,
    "dead": _nothing,
    "size": _another(_shape),
    "dtype": _another(_dtype),
    "op": _another(_op),
    "splits": _another(_splits),
    "kind": _another(_kind),
    "root": _root,
    "order": _swapped,
    "unwaited": _unwaited,
}


def shortcoming(program: Program, script: Script, status: int, said: str) -> str | None:
    """Returns what is wrong with the report of a run of a faulty program; None: it names the guilty rank and its line.

    The line is that of the fault, or, where the rank leaves something out, of what it does next in place of it.
    """
    fault = program.fault
    assert fault is not None
    if status == 0:
        return "the run ends well"
    if "internal error" in said or "panic" in said or status == 124:
        return "the run breaks down"
    if fault.name == "dead":
        return None if re.search(rf"rank +: {fault.rank} .*\n +exitcode +: -9\b", said) else "the end is another one's"
    lines = _guilty(program, script)
    if any("monitoredBarrier" in line and _ranks(line) & _own_numbers(program) for line in said.splitlines()):
        return None  # a monitored barrier says as much as PyTorch's does, by the group's numbers
    waited = "DistStoreError: wait timeout" in said or "which nobody has set" in said
    if waited and (
        fault.name == "skipped" or any(program.steps[i].kind.startswith("store_") for i, _ in fault.instead)
    ):
        return None  # a store cannot know who was to set a key
    named = [line for line in said.splitlines() if fault.rank in _ranks(line)]
    if _has_monitored(program) and any("not joined it" in line for line in named):
        return None  # the rank is in such a barrier, which would have failed a moment later
    if any(fault.name == "skipped" and "ended" in line for line in named):
        return None  # a rank that has ended is nowhere
    if any(re.search(rf"(:|line ){number}\b", line) for line in named for number in lines):
        return None
    return f"no line of the report has rank {fault.rank} and one of the lines {sorted(lines)}"


def _has_monitored(program: Program) -> bool:
    return any(step.kind == "monitored_barrier" for step in program.steps)


def _own_numbers(program: Program) -> set[int]:
    """Returns the numbers that the guilty rank has in the groups of the program's steps."""
    assert program.fault is not None
    groups = [program.members(step) for step in program.steps]
    return {group.index(program.fault.rank) for group in groups if program.fault.rank in group}


def _ranks(line: str) -> set[int]:
    """Returns the ranks that a line names: as rank 1, [rank1], ranks 0, 2 and 4-6."""
    ranks: set[int] = set()
    for numbers in re.findall(r"\branks? ?(\d+(?:(?:, | and |-)\d+)*)", line, re.IGNORECASE):
        for part in re.split(", | and ", numbers):
            first, _, last = part.partition("-")
            ranks.update(range(int(first), int(last or first) + 1))
    return ranks


def _guilty(program: Program, script: Script) -> set[int]:
    fault = program.fault
    assert fault is not None
    steps = dict(fault.instead)
    if fault.name == "skipped":
        return {line for step, line in script.lines if step >= fault.at}
    return {line for step, line in script.lines if step in steps}
