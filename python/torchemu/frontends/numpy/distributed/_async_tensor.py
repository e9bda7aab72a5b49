"""A tensor that a collective is still to fill, which makes the current stream wait when it is first used."""

from __future__ import annotations

from typing import Any

from torchemu.c10d.work import Work
from torchemu.frontends.numpy._tensor import Tensor


class AsyncCollectiveTensor(Tensor):
    """The result of a functional collective, which goes on beside the rank's current stream until an operation
    uses the tensor, or a host program looks at it: then the stream waits for it.

    Attributes:
        elem: the tensor itself, which does not wait.
        completed: whether the stream waits already.
    """

    elem: Tensor
    completed: bool
    _work: Work | None

    def __new__(cls, elem: Tensor, work: Work | None = None) -> AsyncCollectiveTensor:
        """Takes over a tensor and the work that fills it."""
        self = object.__new__(cls)
        self.__dict__.update(elem.__dict__)
        self.elem, self._work, self.completed = elem, work, work is None
        return self

    @property
    def _storage(self) -> Any:  # type: ignore[override]
        """The memory: what any use of the elements begins with."""
        self.trigger_wait()
        return self.elem._storage

    def __repr__(self) -> str:
        return f"AsyncCollectiveTensor({self.trigger_wait()!r})"

    def wait(self) -> Tensor:  # type: ignore[override]
        """Blocks this rank until the collective has ended, and returns the tensor itself."""
        self.trigger_wait().wait()
        return self.elem

    def trigger_wait(self) -> Tensor:
        """Makes the current stream wait, if it does not yet, and returns the tensor itself."""
        if not self.completed:
            self.completed = True
            assert self._work is not None
            self._work.wait()
        return self.elem
