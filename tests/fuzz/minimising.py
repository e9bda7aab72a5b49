"""Makes a program that fails small."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from fuzz.kinds import KINDS
from fuzz.programs import Program, Step


def minimised(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Returns a program that still fails, of which no step can be left out and no step made plainer."""
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(program):
            if fails(smaller):
                program, progress = smaller, True
                break
    return program


def _smaller(program: Program) -> Iterator[Program]:
    """Yields programs with less in them, those with the least first."""
    free = [i for i in range(len(program.steps)) if program.fault is None or i not in dict(program.fault.instead)]
    parts = len(free) // 2
    while parts:
        for start in range(0, len(free), parts):
            yield program.without(*free[start : start + parts])
        parts //= 2
    if len(free) == 1 and program.fault is not None:
        yield program.without(*free)
    for i in free:
        for step in _plainer(program.steps[i]):
            yield replace(program, steps=(*program.steps[:i], step, *program.steps[i + 1 :]))
    if program.joins:
        yield replace(program, joins=False)
    if program.device:
        steps = tuple(replace(step, stream=None) for step in program.steps)
        yield replace(program, steps=steps, device=False)


def _plainer(step: Step) -> Iterator[Step]:
    kind = KINDS[step.kind]
    plain = {"stream": None, "wait": None, "feeds": False, "layout": "whole", "group": (), "root": 0, "salt": 0}
    if not kind.objects:
        plain |= {"dtype": "float32", "shape": (3,), "op": "SUM"}
    for name, value in plain.items():
        if getattr(step, name) != value:
            yield replace(step, **{name: value})
