"""Costs of operations on a rank's device, and their ends there.

NumPy has the result of an operation at once; the device has it when the kernel that the operation is on the rank's
current stream ends, in simulated time. Whoever reads the result then waits for that.
"""

from __future__ import annotations

from collections.abc import Callable

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.frontends.numpy._tensor.core import Tensor

Costs = Callable[[tuple[Tensor, ...]], tuple[int, int, str]]

_MANY = 1024
"""So many launches after which a rank looks how far it is ahead of its device."""

_MOST = 8 * _MANY
"""Launches that a rank may be ahead of its device. With more, its host waits."""


def launch(
    context: runtime.Context, name: str, nbytes: int, flops: int, unit: str, outputs: tuple[Tensor, ...]
) -> None:
    """Puts a kernel that writes these tensors on a rank's current stream. It moves so many bytes between the device's
    memory and its PEs, and does so many operations of a unit: "vector", or the name of a dtype for the matrix unit that
    multiplies it."""
    launched(context, go.LaunchKernel(context.stream, name, nbytes, flops, unit), outputs)


class Costing:
    """A with block in which the running thread's kernels cost what they are told to, not what their operations say.

    Args:
        costs: says, for a kernel's results, its bytes, operations and unit.
    """

    __slots__ = ("_costs", "_table")

    def __init__(self, costs: Costs) -> None:
        self._costs = costs

    def __enter__(self) -> None:
        self._table = runtime.current().of_thread
        self._table[Costing] = self._costs

    def __exit__(self, *_: object) -> None:
        del self._table[Costing]

    @staticmethod
    def told(context: runtime.Context) -> Costs | None:
        """Returns what says so to a rank's running thread, if anything does."""
        return context.of_thread.get(Costing)


def launch_copy(output: Tensor, to_host: bool) -> None:
    """Puts a copy between the device and its host, which fills this tensor, on the rank's current stream."""
    context = launching(output._storage.world)
    launched(context, go.LaunchCopy(context.stream, output.nbytes, to_host), (output,))


def launching(world: runtime.World) -> runtime.Context:
    """The running rank; for a World that is not the current one, the World's own program."""
    context = runtime.current()
    if context.world is world:
        return context
    if not world.is_open:
        raise RuntimeError("the World is closed: its tensors can no longer be used")
    return world.main


def launched(context: runtime.Context, number: int, outputs: tuple[Tensor, ...]) -> None:
    """Says that a rank's launch writes these tensors: hosts that read them wait for its end."""
    for t in outputs:
        storage = t._storage
        storage.launcher, storage.launch, storage.pending = context, number, True
    if number % _MANY == 0:
        context.wait_for_launch(number - _MOST + _MANY)
