"""In which order a rank does the passes of its stages: lists of a pass, a stage and a microbatch."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

FORWARD, BACKWARD = "F", "B"

Action = tuple[str, int, int]
"""F or B, the number of the stage, and of the microbatch."""


def all_forward(stages: list[int], count: int) -> list[Action]:
    """Forward passes, stage after stage."""
    return [(FORWARD, stage, number) for stage in stages for number in range(count)]


def forward_then_backward(stages: list[int], count: int) -> list[Action]:
    """All forward passes before all backward passes: of one stage GPipe, of several breadth first."""
    if len(stages) == 1:
        return all_forward(stages, count) + [(BACKWARD, stages[0], number) for number in range(count)]
    back = [(BACKWARD, stage, number) for stage in reversed(stages) for number in reversed(range(count))]
    return all_forward(stages, count) + back


def one_forward_one_backward(stage: int, stages: int, count: int) -> list[Action]:
    """As many forward passes as there are stages from here on; then one of each in turn."""
    ahead = min(count, stages - stage)
    forward = [(FORWARD, stage, number) for number in range(count)]
    back = [(BACKWARD, stage, number) for number in range(count)]
    pairs = itertools.zip_longest(back, forward[ahead:])
    return forward[:ahead] + [action for pair in pairs for action in pair if action is not None]


def interleaved(stages: list[int], ranks: int, rank: int, count: int) -> list[Action]:
    """1F1B of several stages a rank: microbatches go through them in rounds of as many as there are ranks."""
    per_round = count // max(1, count // ranks)
    total = count * len(stages)
    ahead = min((len(stages) - 1) * per_round + 2 * (ranks - 1 - rank), total)
    forward = list(_in_rounds(stages, per_round, total, FORWARD))
    back = list(_in_rounds(stages[::-1], per_round, total, BACKWARD))
    turns = itertools.zip_longest(forward[ahead:], back)
    return forward[:ahead] + [action for pair in turns for action in pair if action is not None]


def _in_rounds(stages: list[int], per_round: int, total: int, kind: str) -> Iterator[Action]:
    done = dict.fromkeys(stages, 0)
    for step in range(total):
        stage = stages[step // per_round % len(stages)]
        yield kind, stage, done[stage]
        done[stage] += 1
