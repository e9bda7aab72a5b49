"""Memory that ranks have access to although it is another rank's: what it is, and what its use costs.

Ranks are one process, so a view of a peer's memory is a view. An operation that reads one sends a message from the peer
to the rank that runs it, and one that writes one sends a message there; the rank's own memory is charged for the rest.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle as EventHandle
from torchemu.dtypes import dtype
from torchemu.frontends.numpy._device import device
from torchemu.frontends.numpy._shape import row_major
from torchemu.frontends.numpy._tensor import Tensor, dispatch, kernels
from torchemu.frontends.numpy._tensor.core import aliased_to
from torchemu.frontends.numpy._tensor.storage import Handle, Storage
from torchemu.runtime import footprints


class PeerStorage(Storage):
    """A peer's memory, as one rank has access to it. It knows nothing of what the peer does with it: barriers and
    signals bring order.

    Attributes:
        owner: the peer's own view of it.
        home: the peer.
    """

    __slots__ = ("home", "owner")

    def __init__(self, owner: Storage, home: int) -> None:
        super().__init__(owner.world, None, owner.nbytes)
        self.owner, self.home = owner, home
        self.pending = True

    @property
    def others_see(self) -> bool:
        """Always."""
        return True

    @property
    def stays(self) -> bool:
        """Reports whether its bytes have a fixed place."""
        return self.owner.stays

    def wait(self, t: Tensor) -> None:
        """Blocks this rank until what is on its current stream has ended: a host that looks at the memory has to copy
        it, in its stream's order."""
        self.settle(t)
        context = runtime.current()
        context.wait(EventHandle(go.StreamRecord(context.stream)).number)

    def handle(self, kind: dtype, shape: Sequence[int], strides: Sequence[int] | None, offset: int) -> Handle:
        """The core's, for what it does on behalf of this rank."""
        return self.owner.handle(kind, shape, strides, offset)

    @property
    def _root(self) -> Handle | None:
        return self.owner._root

    def _bytes_or_none(self) -> np.ndarray | None:
        return self.owner._bytes_or_none()

    def _fixed(self) -> np.ndarray:
        return self.owner._fixed()

    def _looked_at(self) -> np.ndarray:
        return self.owner._looked_at()


class Peers:
    """The symmetric memory of a World's ranks.

    Attributes:
        shared: the memory of ranks that others may have access to.
    """

    def __init__(self) -> None:
        self.shared: weakref.WeakSet[Storage] = weakref.WeakSet()

    def launch(self, op: dispatch.Op, outputs: tuple[Tensor, ...], inputs: Sequence[Any]) -> None:
        """Charges an operation that may use peers' memory. One that does and only moves elements is its messages."""
        sources, targets = _far(inputs), _far(outputs)
        nbytes, flops, unit = dispatch.cost(op, outputs, inputs)
        for t in sources:
            _access(t, outputs, writes=False)
        if sources or targets:
            nbytes = dispatch.bytes_of(t for t in (*outputs, *inputs) if not _is_far(t))
        if flops or not (sources or targets):
            context = kernels.launching(outputs[0]._storage.world)
            kernels.launch(context, op.name, nbytes, flops, unit, outputs)
        for t in targets:
            _access(t, outputs, writes=True)


def _far(tensors: Iterable[Any]) -> list[Tensor]:
    return [t for t in tensors if _is_far(t)]


def _is_far(t: Any) -> bool:
    return isinstance(t, Tensor) and isinstance(t._storage, PeerStorage)


def _access(t: Tensor, outputs: tuple[Tensor, ...], writes: bool) -> None:
    """Puts the message of an access on the rank's current stream. With it ends what fills the outputs."""
    storage, context = t._storage, runtime.current()
    assert isinstance(storage, PeerStorage)
    launch = go.Access(context.stream, context.world.site(), (storage.home,), t.nbytes, writes)
    kernels.launched(context, launch, outputs)


def share(storage: Storage) -> None:
    """Lets others have access to memory of this rank, after a rendezvous."""
    footprints.hide()
    if storage.world.peers is None:
        storage.world.peers = Peers()
    storage.world.peers.shared.add(storage)
    storage.handles = {}


def handles_of(storage: Storage) -> dict[str, Any] | None:
    """Returns what the rank knows of the others' memory, by group; None for memory that is not shared."""
    return getattr(storage, "handles", None)


def allocated(shape: Sequence[int], kind: dtype, where: device) -> Tensor:
    """A tensor of zeros of this rank, which others may have access to."""
    storage = Storage.zeros(runtime.current().world, kind, math.prod(shape))
    share(storage)
    return view(storage, tuple(shape), kind, 0, where)


def is_symmetric(t: Tensor) -> bool:
    """Reports whether others may have access to the tensor, or it is a view of a peer's."""
    return t._storage.others_see


def settle_stream() -> None:
    """Blocks this rank, in no simulated time, until what is on its current stream is in place, for others to read. What
    is not on it, as an asynchronous collective that has not been waited for, others cannot rely on."""
    context = runtime.current()
    event = go.StreamSettled(context.stream)
    if event:
        context.wait(EventHandle(event).number)


def view(storage: Storage, sizes: tuple[int, ...], kind: dtype, offset: int, where: device) -> Tensor:
    """A view of memory, which the running rank uses like memory of its own device.

    Args:
        offset: from the begin of the memory, in elements.
        where: that device.
    """
    return aliased_to(storage, kind, where, sizes, row_major(sizes), offset)
