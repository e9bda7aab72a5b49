"""Runs of one program under many schedules, and the fewest switches with which it fails."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.launch.failures import in_a_line
from torchemu.runtime.tasks import Failure

_MOST_RUNS = 200
"""So many runs minimising may take."""

_BETWEEN = ";"
"""What stands between the switches of several spawns of a program."""


class Choices:
    """The choices of one run: how it makes them, and those it has made.

    Args:
        schedule: as the core's NewPolicy has it.
        seed: of the schedule.
        reorder: what --reorder is, where the user has not said it; None is nothing.
        sets: what --set-orders is; None is nothing.

    Attributes:
        picks: how often somebody was chosen to run.
        switches: where that was not who could first.
        forks: of a replay, where several could run, and how many, by the number of the spawn.
        kernels: whether there were device programs.
    """

    def __init__(self, schedule: str, seed: int = 0, reorder: int | None = None, sets: int | None = None) -> None:
        self.schedule, self.seed, self.reorder, self.sets = schedule, seed, reorder, sets
        self.picks, self.switches, self.kernels = 0, "", False
        self.forks: list[list[tuple[int, int]]] = []

    def note(self, world: runtime.World) -> None:
        """Keeps what has been chosen in a World, which is open yet."""
        picks, self.switches, forks = go.Decisions(world.handle).split(" ")
        self.picks, self.kernels = int(picks), world.programs is not None
        self.forks = [[_pair(fork) for fork in spawn.split(",") if fork] for spawn in forks.split(_BETWEEN)]


def _pair(text: str) -> tuple[int, int]:
    first, second = text.split(":")
    return int(first), int(second)


class Runs(Protocol):
    """A program that is run again and again."""

    @property
    def depth(self) -> int:
        """The number of ordering constraints that pct looks for; 0 for as many as usual."""

    def failures(self, choices: Choices, silent: bool = False) -> list[Failure]:
        """Runs it once; returns the ranks that failed, the cause first."""

    def reported(self, failed: list[Failure]) -> int:
        """Prints why a run failed, and returns the exit status."""


def named(schedule: str, depth: int, picks: int = 0) -> str:
    """A schedule by its name, as the core has it."""
    return schedule if schedule != "pct" or not (depth or picks) else f"pct:{depth or 3}:{picks}"


def explore(runs: Runs, schedules: Sequence[str], seeds: range) -> int:
    """Runs the ordinary schedule, which counts the picks, and those of some seeds until one fails, by turns;
    returns the exit status. Where there are device programs, what no rule orders moves by the same seeds."""
    first = Choices("replay:")
    failed = runs.failures(first, silent=True)
    if failed:
        return _say(runs.reported(failed), "fails in the ordinary order: no schedule is needed to see it again")
    for seed in _shown(seeds, "schedules"):
        reorder = seed if first.kernels else None
        schedule = schedules[seed % len(schedules)]
        choices = Choices(named(schedule, runs.depth, first.picks), seed, reorder, seed)
        if failed := runs.failures(choices, silent=True):
            return _found(runs, choices, failed)
    kinds = f"--schedule {' and '.join(schedules)}"
    return _say(0, f"{len(seeds)} runs, {kinds} with seeds from {seeds[0]} on: no failure")


def _say(status: int, text: str) -> int:
    print(text, file=sys.stderr)
    return status


def _found(runs: Runs, choices: Choices, failed: list[Failure]) -> int:
    """Reports a failure, with the fewest switches that make it."""
    choices, failed = _minimised(runs, choices, failed)
    flags = f"--replay {choices.switches or repr('')}"
    if choices.reorder is not None:
        flags += f" --reorder {choices.reorder}"
    if choices.sets is not None:
        flags += f" --set-orders {choices.sets}"
    count = sum(len(part) for part in _split(choices.switches))
    many = "1 switch" if count == 1 else f"{count} switches"
    return _say(runs.reported(failed), f"fails with {flags}, {many}: say that instead of --explore to see it again")


def _split(switches: str) -> list[list[str]]:
    """The switches of each spawn."""
    return [[s for s in part.split(",") if s] for part in switches.split(_BETWEEN)]


def _joined(spawns: int, switches: Sequence[tuple[int, str]]) -> str:
    parts = [",".join([s for spawn, s in switches if spawn == i]) for i in range(spawns)]
    return _BETWEEN.join(parts)


def _minimised(runs: Runs, choices: Choices, failed: list[Failure]) -> tuple[Choices, list[Failure]]:
    """The choices with as few switches as can be found in some runs, by leaving out larger and smaller parts of them;
    and how the program fails then, which is as it did."""
    parts = _split(choices.switches)
    kept = [(i, s) for i, part in enumerate(parts) for s in part]
    wanted, left, share = in_a_line(failed[0]), _MOST_RUNS, 1

    def fails_with(switches: Sequence[tuple[int, str]]) -> bool:
        nonlocal choices, failed, left
        left -= 1
        trial = Choices("replay:" + _joined(len(parts), switches), 0, choices.reorder, choices.sets)
        found = runs.failures(trial, silent=True)
        if not found or in_a_line(found[0]) != wanted:
            return False
        trial.switches = _joined(len(parts), switches)
        choices, failed = trial, found
        return True

    for seed in ("reorder", "sets"):
        before = choices
        if getattr(before, seed) is not None:
            value = getattr(before, seed)
            setattr(before, seed, None)
            if not fails_with(kept):
                setattr(before, seed, value)
    while kept and left > 0:
        size = max(1, len(kept) // share)
        for at in range(0, len(kept), size):
            fewer = kept[:at] + kept[at + size :]
            if left > 0 and fails_with(fewer):
                kept, share = fewer, max(share - 1, 1)
                break
        else:
            if size == 1:
                break
            share = min(2 * share, len(kept))
    return choices, failed


def exhaust(runs: Runs, most: int) -> int:
    """Runs all orders in which ranks and threads can take turns, those of the fewest switches first, until one fails or
    there have been so many; returns the exit status."""
    todo: deque[tuple[tuple[int, str], ...]] = deque([()])
    spawns = switches = runs_made = 0
    for number in _shown(range(most), "orders"):
        path = todo.popleft()
        switches, runs_made = len(path), number + 1
        choices = Choices("replay:" + _joined(max(spawns, 1), path))
        failed = runs.failures(choices, silent=True)
        if failed:
            choices.switches = _joined(spawns, path)
            return _found(runs, choices, failed)
        spawns = max(spawns, len(choices.forks))
        todo.extend((*path, fork) for fork in _ways_out(choices, path))
        if not todo:
            break
    if todo:
        said = f"all orders of fewer than {switches} switches are among them, and there are more"
    else:
        said = "these are all orders"
    return _say(0, f"{runs_made} runs: no failure; {said}")


def _ways_out(choices: Choices, path: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The switches that can come after the last of a path."""
    last = (path[-1][0], _pair(path[-1][1])[0]) if path else (-1, -1)
    for spawn, forks in enumerate(choices.forks):
        for pick, ways in forks:
            if (spawn, pick) > last:
                yield from ((spawn, f"{pick}:{way}") for way in range(1, ways))


def _shown(numbers: range, what: str) -> Iterator[int]:
    """The numbers; on a terminal it is said how far one is, and how fast that goes."""
    terminal, start = sys.stderr.isatty(), time.monotonic()
    try:
        for done, number in enumerate(numbers):
            if terminal and done:
                rate = done / (time.monotonic() - start)
                print(f"\r{done} of {len(numbers)} {what}, {rate:.1f} a second ", end="", file=sys.stderr, flush=True)
            yield number
    finally:
        if terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
