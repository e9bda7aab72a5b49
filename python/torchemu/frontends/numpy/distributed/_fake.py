"""The backend "fake": one process can be any rank of any number, for programs whose data do not matter. Nothing is
sent, no time passes, and what would come from others is this rank's own, or stays as it was."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from torchemu.c10d import futures
from torchemu.c10d.backend_registry import BUILT_IN, Plugin
from torchemu.c10d.ops import TABLE
from torchemu.c10d.store_base import Store
from torchemu.c10d.work import Work
from torchemu.frontends.numpy._tensor import Tensor
from torchemu.frontends.numpy.distributed._backend_groups import Backend


class FakeStore(Store):
    """A store with nothing in it, for init_process_group."""


class FakeWork(Work):
    """The work of what was not done: it has ended."""

    def __init__(self) -> None:
        """Makes the work."""
        super().__init__()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """True, at once."""
        return True

    def is_completed(self) -> bool:
        """True."""
        return True

    def get_future(self) -> futures.Future[Any]:
        """A future of None."""
        future: futures.Future[Any] = futures.Future()
        future.set_result(None)
        return future


class FakeProcessGroup(Backend):
    """The backend of fake groups, on every device."""

    def getBackendName(self) -> str:  # noqa: N802 (PyTorch's name)
        """ "fake"."""
        return "fake"

    def allgather(self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any = None) -> Work:
        """Takes this rank's tensor for everybody's."""
        for row, own in zip(outputs, inputs, strict=True):
            for block in row:
                block.copy_(own)
        return FakeWork()

    def _allgather_base(self, output: Tensor, given: Tensor, opts: Any = None) -> Work:
        for block in output.view(-1).split(max(given.numel(), 1)):
            block.copy_(given.reshape(-1))
        return FakeWork()

    def allgather_into_tensor_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> Work:
        """_allgather_base of several tensors."""
        for output, given in zip(outputs, inputs, strict=True):
            self._allgather_base(output, given)
        return FakeWork()

    def _nothing(self, *args: Any) -> Work:
        """Leaves the tensors as they are."""
        return FakeWork()


for _name in (*TABLE.methods(), "send", "recv", "recv_anysource"):
    if _name not in vars(FakeProcessGroup):
        setattr(FakeProcessGroup, _name, FakeProcessGroup._nothing)


def _created(about: Any, options: Any) -> FakeProcessGroup:
    """Makes the backend of one group."""
    return FakeProcessGroup(about.group_rank, about.group_size)


BUILT_IN["FAKE"] = Plugin(_created, extended_api=True)
