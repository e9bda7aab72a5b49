"""What operations take of a rank's device, and when they end there.

NumPy has the result of an operation at once; the device has it when the kernel that the operation is on the rank's
current stream ends, in simulated time. Whoever reads the result then waits for that.
"""

from __future__ import annotations

from collections import deque

from torchemu import _runtime
from torchemu._binding import go
from torchemu._rank_local import RankLocal
from torchemu._tensor.core import Tensor

_MANY = 1024
"""So many launches after which the ended ones are looked for."""

_MOST = 8 * _MANY
"""Launches that a rank may be ahead of its device. With more, its host waits."""


class Launches:
    """The ends of a rank's kernels, in the order of their launches: handles of events, which only grow.

    An end is forgotten some time after it has come. A storage keeps its end's handle and asks here before it waits.
    """

    def __init__(self) -> None:
        self._ends: deque[int] = deque()

    def add(self, end: int) -> None:
        """Takes over an event."""
        ends = self._ends
        ends.append(end)
        if len(ends) % _MANY == 0:
            self._forget()
            if len(ends) >= _MOST:
                self.wait(ends[_MOST // 2])
                self._forget()

    def wait(self, end: int) -> None:
        """Blocks the running rank until a kernel has ended."""
        if self._ends and end >= self._ends[0]:
            _runtime.current().wait(end)

    def _forget(self) -> None:
        while self._ends and go.IsDone(self._ends[0]):
            go.Release(self._ends.popleft())


_LAUNCHES: RankLocal[Launches] = RankLocal(Launches)


def launch(name: str, nbytes: int, flops: int, unit: str, outputs: tuple[Tensor, ...]) -> None:
    """Puts a kernel that writes these tensors on the rank's current stream. It moves so many bytes between the device's
    memory and its PEs, and does so many operations of a unit: "vector", or the name of a dtype for the matrix unit that
    multiplies it."""
    stream = _stream(outputs[0]._storage.world)
    ends(outputs, go.LaunchKernel(stream, name, "", nbytes, flops, unit))


def launch_copy(output: Tensor, to_host: bool) -> None:
    """Puts a copy between the device and its host, which fills this tensor, on the rank's current stream."""
    ends((output,), go.LaunchCopy(_stream(output._storage.world), "", output.nbytes, to_host))


def follow(output: Tensor) -> None:
    """Says that a tensor is there when all has ended that is on the rank's current stream: no kernel fills it."""
    ends((output,), go.StreamRecord(_stream(output._storage.world)))


def _stream(world: _runtime.World) -> int:
    """The running rank's; for a World that is not the current one, that of the World's own program."""
    context = _runtime.current()
    if context.world is world:
        return context.stream
    if not world.is_open:
        raise RuntimeError("the World is closed: its tensors can no longer be used")
    return world.main.stream


def ends(outputs: tuple[Tensor, ...], end: int) -> None:
    """Takes over the event with which an operation ends that writes these tensors: hosts that read them wait for it."""
    launches = _LAUNCHES.get()
    launches.add(end)
    for t in outputs:
        storage = t._storage
        storage.launches, storage.end, storage.pending = launches, end, True
