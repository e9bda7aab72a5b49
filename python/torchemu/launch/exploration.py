"""Runs of one program under many schedules, and the fewest switches with which it fails."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Protocol

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.launch import progress
from torchemu.launch.failures import in_a_line
from torchemu.launch.schedule_switches import Switch, numbers, rows, written
from torchemu.runtime import footprints
from torchemu.runtime.tasks import Failure

_MOST_RUNS = 200
"""So many runs minimising may take."""


class Choices:
    """The choices of one run: how it makes them, and those it has made.

    Args:
        schedule: fifo, random, pct, replay or exhaustive.
        seed: of the schedule.
        reorder: what --reorder is, where the user has not said it; None is nothing.
        numbers: of the schedule, as the core's NewScheduler has them.
        sets: what --set-orders is; None is nothing.

    Attributes:
        picks: how often somebody was chosen to run, for each spawn.
        switches: where that was not who could first.
        forks: of a replay, where several could run: the number of the spawn, that of the pick, and how many.
        kernels: whether there were device programs.
    """

    def __init__(
        self,
        schedule: str,
        seed: int = 0,
        reorder: int | None = None,
        numbers: Sequence[int] = (),
        sets: int | None = None,
    ) -> None:
        self.schedule, self.seed, self.reorder, self.numbers, self.sets = schedule, seed, reorder, numbers, sets
        self.picks: Sequence[int] = ()
        self.switches: Sequence[Switch] = ()
        self.forks: Sequence[tuple[int, ...]] = ()
        self.kernels = False

    @classmethod
    def replayed(cls, switches: Iterable[Switch], reorder: int | None = None, sets: int | None = None) -> Choices:
        """Makes those of a run that decides first in, first out but for these switches."""
        return cls("replay", 0, reorder, numbers(switches), sets)

    def note(self, world: runtime.World) -> None:
        """Keeps what has been chosen in a World, which is open yet."""
        self.picks, self.kernels = go.Picks(world.handle), world.programs is not None
        self.switches = [Switch(*row) for row in rows(go.Switches(world.handle), 4)]
        self.forks = list(rows(go.Forks(world.handle), 3))


class Runs(Protocol):
    """A program that is run again and again."""

    @property
    def depth(self) -> int:
        """The number of ordering constraints that pct looks for; 0 for as many as usual."""

    def failures(self, choices: Choices, silent: bool = False) -> list[Failure]:
        """Runs it once; returns the ranks that failed, the cause first."""

    def reported(self, failed: list[Failure]) -> int:
        """Prints why a run failed, and returns the exit status."""


def chosen(schedule: str, depth: int, forks: int = 0, seed: int = 0, reorder: int | None = None) -> Choices:
    """Makes the choices of a schedule; depth and forks are pct's, 0 for as many as usual, and for nobody knows."""
    return Choices(schedule, seed, reorder, (depth, forks) if schedule == "pct" else ())


def explore(runs: Runs, schedules: Sequence[str], seeds: range) -> int:
    """Runs the ordinary schedule, which counts the forks, and those of some seeds until one fails, by turns;
    returns the exit status. Where there are device programs, what no rule orders moves by the same seeds."""
    first = Choices.replayed(())
    failed = runs.failures(first, silent=True)
    if failed:
        return _say(runs.reported(failed), "fails in the ordinary order: no schedule is needed to see it again")
    for seed in progress.shown(seeds, "schedules"):
        reorder = seed if first.kernels else None
        schedule = schedules[seed % len(schedules)]
        choices = chosen(schedule, runs.depth, len(first.forks), seed, reorder)
        choices.sets = seed
        if failed := runs.failures(choices, silent=True):
            return _found(runs, choices, failed)
    kinds = f"--schedule {' and '.join(schedules)}"
    return _say(0, f"{len(seeds)} runs, {kinds} with seeds from {seeds[0]} on: no failure")


def _say(status: int, text: str) -> int:
    progress.make_room()
    print(text, file=sys.stderr)
    return status


def _found(runs: Runs, choices: Choices, failed: list[Failure]) -> int:
    """Reports a failure, with the fewest switches that make it."""
    choices, failed = _minimised(runs, choices, failed)
    progress.make_room()
    flags = f"--replay {written(choices.switches, len(choices.picks)) or repr('')}"
    if choices.reorder is not None:
        flags += f" --reorder {choices.reorder}"
    if choices.sets is not None:
        flags += f" --set-orders {choices.sets}"
    count = len(choices.switches)
    many = "1 switch" if count == 1 else f"{count} switches"
    return _say(runs.reported(failed), f"fails with {flags}, {many}: say that instead of --explore to see it again")


def _minimised(runs: Runs, choices: Choices, failed: list[Failure]) -> tuple[Choices, list[Failure]]:
    """The choices with as few switches as can be found in some runs, by leaving out larger and smaller parts of them;
    and how the program fails then, which is as it did."""
    kept = list(choices.switches)
    wanted, left, share = in_a_line(failed[0]), _MOST_RUNS, 1

    def fails_with(switches: Sequence[Switch]) -> bool:
        nonlocal choices, failed, left
        left -= 1
        trial = Choices.replayed(switches, choices.reorder, choices.sets)
        found = runs.failures(trial, silent=True)
        if not found or in_a_line(found[0]) != wanted:
            return False
        trial.switches, trial.picks = switches, choices.picks  # as many spawns as the failure that was found
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


def exhaust(runs: Runs, most: int, full: bool = False) -> int:
    """Runs all orders in which ranks and threads can take turns, those of the fewest switches first, until one fails or
    there have been so many; returns the exit status. Of orders that differ only in steps which have nothing to do with
    each other it runs one, unless it is to be full."""
    footprints.watch_system()
    exploration = go.NewExploration(int(full))
    made = left = switches = 0
    for number in progress.shown(range(most), "orders"):
        made = number + 1
        go.BeginOrder(exploration)
        choices = Choices("exhaustive", numbers=(exploration,))
        failed = runs.failures(choices, silent=True)
        if failed:
            return _found(runs, choices, failed)
        left, switches, full = go.EndOrder(exploration)
        if not left:
            break
    runs_made = "1 run" if made == 1 else f"{made} runs"
    return _say(0, f"{runs_made}: no failure; {_rest(left, switches, full, go.Skipped(exploration))}")


def _rest(left: int, switches: int, full: bool, skipped: int) -> str:
    """Says which orders have not been run."""
    if not left:
        said = "these are all orders"
    elif full:
        said = f"all orders of fewer than {switches} switches are among them, and there are more"
    else:
        said = f"the bound is reached, and there are at least {left} more"
    if not full and skipped:
        others = "1 other choice was" if skipped == 1 else f"{skipped} other choices were"
        said += f", but for those that differ in nothing that ranks notice: {others} skipped"
    return said
