"""The measurements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bandwidth.collectives import COLLECTIVES, Call, Collective
from bandwidth.options import Options
from bandwidth.values import DTYPES
from torchemu import runtime
from torchemu.runtime.waiting import MICROSECOND, host_time, reach

_LONGER_THAN_A_BARRIER = 100_000 * MICROSECOND


@dataclass
class Result:
    """Of one size, out of place or in place; bandwidths in GB/s."""

    microseconds: float
    algbw: float
    busbw: float
    wrong: int | None  # elements; None: not checked


@dataclass
class Row:
    """One line of the table."""

    collective: Collective
    size: int  # bytes, of the larger side
    count: int  # elements that nccl-tests counts: of a block, where there are blocks
    results: list[Result] = field(default_factory=list)


class Sweep:
    """All measurements of a run. Its ranks share it, and meet before and after each.

    Args:
        torch: torchemu.
        options: what is measured.
        world: how many ranks.
        report: is called with each row, by one rank.
    """

    def __init__(self, torch: Any, options: Options, world: int, report: Callable[[Row], None]) -> None:
        self.torch, self.options, self.world, self._report = torch, options, world, report
        self._collectives = [COLLECTIVES[name] for name in options.collectives or COLLECTIVES]
        self._width = np.dtype(DTYPES[options.dtype][1]).itemsize
        self._wrong = 0  # elements of all ranks, in the measurement that goes on
        self._logged = 0  # what of the log has been looked at
        self._latest = 0  # picoseconds, of all hosts when they last met
        self.total = len(self._collectives) * len(list(options.sizes()))  # rows

    def rank(self, rank: int) -> None:
        """Runs each collective at each size on one rank."""
        self.torch.distributed.init_process_group("nccl")
        for collective in self._collectives:
            for size in self.options.sizes():
                self._row(collective, rank, size)

    def _row(self, collective: Collective, rank: int, size: int) -> None:
        blocks = self.world if collective.cut else 1
        count = size // self._width // blocks
        row = Row(collective, count * blocks * self._width, count)
        for in_place in (False, True):
            call = Call(self.torch, rank, self.world, count, self.options, in_place)
            picoseconds = self._timed(collective, call)
            checked = self.options.check and (collective.overlaps or not in_place)
            if checked:
                self._wrong += wrong(collective.expected(call), call.take.numpy())
            self._meet()
            row.results.append(self._result(row, picoseconds, self._wrong if checked else None))
            self._meet()
            self._wrong = 0
        if rank == 0:
            self._report(row)

    def _timed(self, collective: Collective, call: Call) -> float:
        """Calls the collective, at the same time on all ranks, and returns how long a call took, in picoseconds."""
        took = 0
        for i in range(-self.options.warmup, self.options.iters):
            collective.prepare(call)
            if call.rank == 0:
                self._calls()  # those before do not count
            self._start_together()
            collective.issue(call)
            call.give.numpy()  # waits for the end
            call.take.numpy()
            self._meet()
            if call.rank == 0 and i >= 0:
                calls = self._calls()
                took += max(c["end"] for c in calls) - min(c["start"] for c in calls)
        return took / self.options.iters

    def _calls(self) -> list[dict[str, Any]]:
        """Returns the collectives that have ended since the last time, from the log of the World."""
        new = runtime.current_world().collectives(self._logged)
        self._logged += len(new)
        return [c for c in new if c["collective"] != "barrier"]

    def _result(self, row: Row, picoseconds: float, errors: int | None) -> Result:
        algbw = row.size / picoseconds * 1e3 if picoseconds else 0.0
        return Result(picoseconds / 1e6, algbw, algbw * row.collective.bus(self.world), errors)

    def _start_together(self) -> None:
        """Lets all ranks' hosts come to one moment of simulated time: they leave a barrier one after another."""
        self._meet()
        self._latest = max(self._latest, host_time())
        self._meet()
        reach(self._latest + _LONGER_THAN_A_BARRIER - host_time())

    def _meet(self) -> None:
        self.torch.distributed.barrier()


def wrong(expected: np.ndarray | None, got: np.ndarray) -> int:
    """How many elements are not the expected ones."""
    return 0 if expected is None else int(np.count_nonzero(got != expected))
