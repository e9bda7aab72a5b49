"""torchemu run --mirror: one rank of each class runs and stands for the others, or every rank where that cannot be.

Two ranks of each class run, one after the other, in worlds of their own: at first the last one, whose output is not
shown, and then the first one, each of whose calls is compared. Where they differ every rank runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.bridge.ints import Ints
from torchemu.errors import DeadlockError
from torchemu.runtime.classes import Calls, Classes

if TYPE_CHECKING:
    from torchemu.runtime.tasks import Failure


@dataclass
class Mirror:
    """The ranks that run, and their calls.

    Attributes:
        of: by rank, the one that stands for it.
        calls: those of the ranks that run.
    """

    of: list[int]
    calls: Calls
    asymmetry: str = ""
    peers: tuple[int, ...] = ()

    def acts(self, rank: int) -> bool:
        """Says whether a rank runs."""
        return self.of[rank] == rank

    def begin(self, world: runtime.World) -> None:
        """Lets the ranks of a World stand for others. Raises ValueError where they cannot."""
        spare = range(len(self.of), world.sips)
        go.Mirror(world.handle, Ints([*self.of, *spare]))
        world.calls = self.calls

    def end(self, world: runtime.World, has_failed: bool) -> None:
        """Notes why they could not, of a run that has come to its end or in which ranks have failed."""
        if not has_failed:
            self.calls.check_end()
        text = go.Asymmetry(world.handle)
        if text:
            about = json.loads(text)
            self.asymmetry, self.peers = about["text"], tuple(about["peers"] or ())

    @property
    def reason(self) -> str:
        """Why not each rank that runs stands for others; "" where it does."""
        return self.asymmetry or self.calls.divergence


Run = Callable[["Mirror | None", bool], "list[Failure]"]
"""Runs the program, with who stands for others and whether its output is to be seen; returns the ranks that failed."""


def failures(run: Run, ranks: int, of_a_node: int) -> list[Failure]:
    """Runs a program with as few ranks as can stand for all; returns those that failed.

    Args:
        run: runs it.
        ranks: how many there are.
        of_a_node: how many are on a node.
    """
    classes: Classes | None = Classes([0] * ranks)
    while classes is not None and len(classes) < ranks:
        mirror, failed = _tried(run, classes)
        if not mirror.reason and not _are_stuck(failed):
            return failed
        classes = _finer(classes, mirror, of_a_node)
        reason = mirror.reason or str(failed[0].exception).partition("\n")[0]
        running = "every rank runs" if classes is None or len(classes) == ranks else f"{len(classes)} ranks run"
        print(f"torchemu: --mirror: {running}: {reason}", file=sys.stderr)
    return run(None, True)


def _tried(run: Run, classes: Classes) -> tuple[Mirror, list[Failure]]:
    """Runs the last rank of each class, and if that is well the first."""
    last = Mirror(classes.standing(max), Calls(classes))
    failed = run(last, False)
    if last.reason or _are_stuck(failed):
        return last, failed
    first = Mirror(classes.standing(min), Calls(classes, last.calls))
    return first, run(first, True)


def _are_stuck(failed: list[Failure]) -> bool:
    """Says whether ranks wait for others, which may be those that do not run."""
    return bool(failed) and isinstance(failed[0].exception, DeadlockError)


def _finer(classes: Classes, mirror: Mirror, of_a_node: int) -> Classes | None:
    """Returns classes of fewer ranks, after some that did not do; None where every rank is to run."""
    if mirror.calls.divergence and not mirror.asymmetry:
        return None
    finer = classes.by_peers(mirror.peers) if mirror.peers else classes.crossed(lambda rank: rank % of_a_node)
    return finer if finer is not None and len(finer) > len(classes) else None
