"""What operations take of a rank's device, and when they end there.

NumPy has the result of an operation at once; the device has it when the kernel that the operation is on the rank's
current stream ends, in simulated time. Whoever reads the result then waits for that.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from torchemu import _runtime
from torchemu._binding import go
from torchemu._rank_local import RankLocal
from torchemu._tensor.core import Tensor

_MANY = 1024
"""So many launches after which the ended ones are looked for."""


class Cost(NamedTuple):
    """What an operation takes of its device: bytes that move between its memory and its PEs, and operations of a unit:
    "vector", or the name of a dtype for the matrix unit that multiplies it."""

    nbytes: int
    flops: int
    unit: str


class Launches:
    """The ends of a rank's kernels, in the order of their launches: handles of events.

    An end is forgotten some time after it has come. A storage keeps its end's number and asks here before it waits.
    """

    def __init__(self) -> None:
        self._ends: deque[int] = deque()
        self._known: set[int] = set()

    def add(self, end: int) -> None:
        """Takes over an event."""
        self._ends.append(end)
        self._known.add(end)
        if len(self._ends) % _MANY == 0:
            self._forget()

    def wait(self, end: int) -> None:
        """Blocks the running rank until a kernel has ended."""
        if end in self._known:
            _runtime.current().wait(end)

    def _forget(self) -> None:
        while self._ends and go.IsDone(self._ends[0]):
            end = self._ends.popleft()
            self._known.discard(end)
            go.Release(end)


_LAUNCHES: RankLocal[Launches] = RankLocal(Launches)


def launch(name: str, cost: Cost, outputs: tuple[Tensor, ...]) -> None:
    """Puts a kernel that writes these tensors on the rank's current stream."""
    stream = _stream(outputs[0]._storage.world)
    nbytes, flops, unit = cost
    _ends(outputs, go.LaunchKernel(stream, name, _numbers(outputs), nbytes, flops, unit))


def launch_copy(output: Tensor, to_host: bool) -> None:
    """Puts a copy between the device and its host, which fills this tensor, on the rank's current stream."""
    _ends((output,), go.LaunchCopy(_stream(output._storage.world), _numbers((output,)), output.nbytes, to_host))


def _stream(world: _runtime.World) -> int:
    """The running rank's; for a World that is not the current one, that of the World's own program."""
    context = _runtime.current()
    if context.world is world:
        return context.stream
    if not world.is_open:
        raise RuntimeError("the World is closed: its tensors can no longer be used")
    return world.main.stream


def _numbers(outputs: tuple[Tensor, ...]) -> str:
    """The core's handles of the tensors, if it knows one of their storages: then it lets readers wait."""
    for t in outputs:
        if t._storage.is_known:
            return ",".join([str(t._handle) for t in outputs])
    return ""


def _ends(outputs: tuple[Tensor, ...], end: int) -> None:
    if not end:
        return
    launches = _LAUNCHES.get()
    launches.add(end)
    for t in outputs:
        storage = t._storage
        storage.launches, storage.end, storage.pending = launches, end, True
