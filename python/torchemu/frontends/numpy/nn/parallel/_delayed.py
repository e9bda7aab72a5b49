"""Gradients that are averaged all at once, when that of another parameter is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.joining import cat
from torchemu.frontends.numpy.autograd.variable import Variable
from torchemu.frontends.numpy.distributed import ProcessGroup, all_reduce


class Delayed:
    """Averages the gradients of some parameters that a reducer leaves alone.

    Args:
        params: whose gradients.
        last: the parameter whose gradient comes when theirs are there.
        group: the ranks.
    """

    def __init__(self, params: Sequence[Tensor], last: Tensor, group: ProcessGroup) -> None:
        self._params, self._group = params, group
        self.active = False
        last.register_hook(self._issue)

    @no_grad()
    def _issue(self, grad: Tensor) -> None:
        """What has no gradient by now is left as it is, on all ranks alike."""
        ready = [p.grad for p in self._params if p.grad is not None]
        if not self.active or not ready:
            return
        flat = cat([grad.reshape(-1) for grad in ready]).div_(self._group.size())
        work = all_reduce(flat, group=self._group, async_op=True)
        Variable._execution_engine.queue_callback(lambda: _finish(work, flat, ready))


@no_grad()
def _finish(work: Any, flat: Tensor, grads: Sequence[Tensor]) -> None:
    work.wait()
    for grad, part in zip(grads, flat.split([grad.numel() for grad in grads]), strict=True):
        grad.copy_(part.view(grad.shape))
