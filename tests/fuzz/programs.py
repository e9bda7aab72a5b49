"""Programs are lists of steps, made from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from fuzz.kinds import KINDS, PACKED, Kind

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "uint8", "int32", "int64")
BITWISE = ("BAND", "BOR", "BXOR")
"""Operations of integers, which NCCL has not."""

SHAPES = ((), (1,), (3,), (2, 3), (4, 1), (2, 2, 2), (0,), (0, 2), (5, 7), (257,))


@dataclass(frozen=True)
class Step:
    """A call of the members of a group, with what it sends and what it gets.

    Attributes:
        kind: a key of KINDS.
        group: the members' ranks; () are all of them.
        dtype, shape, layout: of the tensors; see the prelude.
        op: how a reduction reduces.
        root: which of the members has a part of its own.
        salt: makes the numbers others than those of other steps.
        wait: after how many further steps the call is waited for; None: it is a synchronous one.
        feeds: whether the numbers of later steps depend on its result.
        stream: the side stream that it is issued on, in programs of devices; None: the current one.
    """

    kind: str
    group: tuple[int, ...] = ()
    dtype: str = "float32"
    shape: tuple[int, ...] = (3,)
    layout: str = "whole"
    op: str = "SUM"
    root: int = 0
    salt: int = 0
    wait: int | None = None
    feeds: bool = False
    stream: int | None = None


@dataclass(frozen=True)
class Fault:
    """A deviation of one rank from what the program says.

    Attributes:
        name: what kind of fault it is.
        rank: the guilty one.
        at: the step.
        instead: by the numbers of steps, what the rank does there: another step, or None for nothing at all.
    """

    name: str
    rank: int
    at: int
    instead: tuple[tuple[int, Step | None], ...] = ()


@dataclass(frozen=True)
class Program:
    """Steps of a number of ranks.

    Attributes:
        seed: what it was made of.
        size: the number of ranks.
        steps: what they do.
        device: whether tensors are on devices, with NCCL, where there are such.
        joins: whether there is a barrier at the end.
        fault: what one rank does otherwise.
    """

    seed: int
    size: int
    steps: tuple[Step, ...]
    device: bool = False
    joins: bool = True
    fault: Fault | None = None

    def members(self, step: Step) -> tuple[int, ...]:
        """Returns the ranks of a step's group, in their order there."""
        return step.group or tuple(range(self.size))

    def callers(self, step: Step) -> tuple[int, ...]:
        """Returns the ranks that have anything to do in a step."""
        members = self.members(step)
        if not KINDS[step.kind].pair:
            return members
        return members[step.root % len(members)], members[(step.root + 1) % len(members)]

    def without(self, *steps: int) -> Program:
        """Returns the program without some steps. A fault's must stay."""
        kept = [i for i in range(len(self.steps)) if i not in steps]
        at = {old: new for new, old in enumerate(kept)}
        fault = self.fault
        if fault is not None:
            instead = tuple((at[i], step) for i, step in fault.instead)
            fault = replace(fault, at=at[fault.at], instead=instead)
        return replace(self, steps=tuple(self.steps[i] for i in kept), fault=fault)


def random_program(seed: int, size: int, device: bool) -> Program:
    """Returns the valid program of a seed, for so many ranks."""
    rng = random.Random(f"{seed} {size} {device}")
    groups = [(), *[_group(rng, size) for _ in range(rng.randrange(4))]]
    kinds = [name for name, kind in KINDS.items() if not (device and kind.host)]
    steps = [_step(rng, rng.choice(kinds), rng.choice(groups), size, device) for _ in range(rng.randrange(3, 13))]
    return Program(seed, size, tuple(steps), device, joins=rng.random() < 0.5)


def _group(rng: random.Random, size: int) -> tuple[int, ...]:
    return tuple(sorted(rng.sample(range(size), rng.randint(1, size))))


def _step(rng: random.Random, name: str, group: tuple[int, ...], size: int, device: bool) -> Step:
    kind = KINDS[name]
    if len(group) == 1 and (kind.pair or name == "ring"):
        group = ()
    dtype = _dtype(rng, kind, device)
    return Step(
        name,
        group,
        dtype,
        _shape(rng, name),
        rng.choice([layout for layout in kind.layouts if layout in PACKED or not device])
        if rng.random() < 0.4
        else "whole",
        _op(rng, dtype, device),
        rng.randrange(len(group) or size),
        rng.randrange(100),
        rng.randrange(5) if kind.work and rng.random() < 0.5 else None,
        rng.random() < 0.2,
        rng.randrange(2) if device and rng.random() < 0.3 else None,
    )


def _shape(rng: random.Random, name: str) -> tuple[int, ...]:
    """Returns a shape that gloo takes: no empty one from any source, and of whole tensors none without dimensions."""
    shape = rng.choice(SHAPES)
    if (name == "any_source" and 0 in shape) or (name.endswith("_tensor") and not shape):
        return (1,)
    return shape


def _dtype(rng: random.Random, kind: Kind, device: bool) -> str:
    if kind.floats:
        return rng.choice(FLOATS)
    more = () if kind.reduces else ("bool",)
    return rng.choice((*FLOATS, *INTEGERS, *more, *(("complex64",) if kind.complexes and not device else ())))


def _op(rng: random.Random, dtype: str, device: bool) -> str:
    if dtype == "complex64":
        return "SUM"
    ops = ["SUM", "PRODUCT", "MIN", "MAX"]
    if dtype in FLOATS:
        ops.append("AVG")
    elif not device:
        ops += BITWISE
    return rng.choice(ops)
