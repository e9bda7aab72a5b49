"""Dispatch: a group that is not on the fabric calls the methods of its own class, or those of backends that are
registered for types of devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchemu.bridge.calls import Call
from torchemu.c10d.backend_registry import BackendType
from torchemu.c10d.ops import TABLE, Op
from torchemu.c10d.reduce_op import reduction_of
from torchemu.frontends.numpy._device import ACCELERATORS, CPU
from torchemu.frontends.numpy._tensor import Tensor
from torchemu.frontends.numpy.distributed._options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)

if TYPE_CHECKING:
    from torchemu.frontends.numpy.distributed._process_group import ProcessGroup


@dataclass(frozen=True)
class _Given:
    """A collective and its tensors, as the methods of process groups take them.

    Attributes:
        op: the function that has the method.
        call: what the program called.
        outs, ins: what the rank receives and gives.
        async_op: the program waits by itself.
        size: how many ranks the group has.
    """

    op: Op
    call: Call
    outs: Sequence[Tensor]
    ins: Sequence[Tensor]
    async_op: bool
    size: int

    def arguments(self) -> tuple[Any, ...]:
        """Returns what the method is called with."""
        if self.op.silent:
            return (self._options(),)
        if self.op.several:
            return self._several()
        if self.op.whole:
            rows = (_rows(self.outs), _rows(self.ins)) if self.op.kind.exchanges else ()
            return self.outs[0], self.ins[0], *rows, self._options()
        if self.op.kind.in_place:
            return list(self.outs if self.op.kind.from_root else self.ins), self._options()
        return self._lists()

    def _several(self) -> tuple[Any, ...]:
        """Several tensors, and where each rank has a list of them, a list of lists."""
        if self.op.kind.in_place:
            return list(self.ins), self._options()
        if self.op.whole:
            return list(self.outs), list(self.ins), self._options()
        each = len(self.ins)
        blocks = [list(self.outs[i : i + each]) for i in range(0, len(self.outs), each)]
        return blocks, list(self.ins), self._options()

    def _lists(self) -> tuple[Any, ...]:
        """A tensor for each rank where there are blocks, and lists of such lists, for a process might have several
        devices."""
        outs, ins = list(self.outs), list(self.ins)
        if self.op.kind.gathers:
            outs = _parts(self.outs, self.size)
            return [outs] if outs else [], ins, self._options()
        if self.op.kind.scatters:
            ins = _parts(self.ins, self.size)
            return outs, [ins] if ins else [], self._options()
        return outs, ins, self._options()

    def _options(self) -> Any:
        options = (_OPTIONS.get(self.op.name) or _OPTIONS[self.op.kind.name])(asyncOp=self.async_op)
        if self.op.kind.reduces and not self.op.silent:
            options.reduceOp = reduction_of(self.call.op, self.call.factor)
        if self.op.kind.rooted:
            options.rootRank = self.call.root
        return options


_OPTIONS: dict[str, Any] = {
    "all_reduce": AllreduceOptions,
    "all_reduce_coalesced": AllreduceCoalescedOptions,
    "barrier": BarrierOptions,
    "all_gather": AllgatherOptions,
    "reduce_scatter": ReduceScatterOptions,
    "broadcast": BroadcastOptions,
    "reduce": ReduceOptions,
    "gather": GatherOptions,
    "scatter": ScatterOptions,
    "all_to_all": AllToAllOptions,
}
"""PyTorch's classes of options, by the kind; those of a function that has its own by its name."""


def _parts(tensors: Sequence[Tensor], size: int) -> list[Tensor]:
    """A tensor for each rank; none on a rank that has none."""
    if len(tensors) != 1 or size == 1:
        return list(tensors)
    flat = tensors[0].view(-1)
    return list(flat.split(flat.numel() // size)) if flat.numel() else [flat] * size


def _rows(tensors: Sequence[Tensor]) -> list[int]:
    """The numbers of rows for each rank; none where they are equal."""
    return list(getattr(tensors, "rows", ()))


class Dispatch:
    """The operations of one group go to the methods that do them.

    Args:
        group: the group.
    """

    def __init__(self, group: ProcessGroup) -> None:
        self._group = group
        self._backends: dict[str, Any] = {}  # by type of device
        self._default = BackendType.UNDEFINED
        self._running: list[str] = []  # the group's own methods under way

    def collective(self, call: Call, outs: Sequence[Tensor], ins: Sequence[Tensor], async_op: bool) -> Any:
        """Does a collective, and returns its work; without async_op waits for it, and returns None."""
        op = TABLE.op(call.name, call.kind)
        given = _Given(op, call, outs, ins, async_op, self._group.size())
        work = self._called(op.method, [*outs, *ins], *given.arguments())
        if async_op:
            return work
        if work is not None:
            work.wait()
        return None

    def message(self, sending: bool, peer: int, tag: int, tensor: Tensor) -> Any:
        """Does one side of a message with a group rank, or from anybody for -1, and returns its work."""
        if sending:
            return self._called("send", [tensor], [tensor], peer, tag)
        if peer < 0:
            return self._called("recv_anysource", [tensor], [tensor], tag)
        return self._called("recv", [tensor], [tensor], peer, tag)

    def _called(self, method: str, tensors: Sequence[Tensor], *arguments: Any) -> Any:
        """Calls the group's own method, or that of the backend for the tensors' device where the group has none, or
        calls what it inherits from its own."""
        from torchemu.frontends.numpy.distributed._group_methods import GroupMethods

        own = getattr(self._group, method)
        inherited = getattr(own, "__func__", None) is getattr(GroupMethods, method)
        if inherited or method in self._running:
            return getattr(self._backend_of(tensors), method)(*arguments)
        self._running.append(method)
        try:
            return own(*arguments)
        finally:
            self._running.remove(method)

    def _backend_of(self, tensors: Sequence[Tensor]) -> Any:
        """Returns what is registered for the device of tensors; without any, for the first type of device."""
        return self.backend(tensors[0].device.type) if tensors else self.any_backend()

    def any_backend(self) -> Any:
        """Returns what is registered for the first type of device."""
        return self.backend(next(iter(self._backends), CPU))

    def backend(self, kind: str) -> Any:
        """Returns what is registered for a type of device.

        Raises:
            RuntimeError: nothing.
        """
        for name in ACCELERATORS if kind in ACCELERATORS else (kind,):
            if self._backends.get(name) is not None:
                return self._backends[name]
        if kind in self._backends:
            raise RuntimeError(f"Could not retrieve or create the backend for device type {kind}")
        raise RuntimeError(f"No backend type associated with device type {kind}")

    @property
    def kinds(self) -> list[str]:
        """The types of devices that something is registered for."""
        return list(self._backends)

    def register(self, kind: str, of: BackendType, backend: Any) -> None:
        """Makes a backend do what is on devices of a type."""
        self._backends[kind] = backend
        if self._default is BackendType.UNDEFINED:
            self._default = of

    def prefer(self, of: BackendType) -> None:
        """Makes a kind of backend that which the group is called after."""
        self._default = of

    def name(self) -> str:
        """Returns what the group's own class calls it, or else the kind of its backend."""
        own = getattr(self._group, "getBackendName", None)
        return own() if own is not None else self._default.name.lower()

    def abort(self) -> None:
        """Ends what the backends are doing."""
        for backend in dict.fromkeys(self._backends.values()):
            backend.abort()


def checked_place(what: str, place: Sequence[Any]) -> tuple[Any, int, int]:
    """The store, perhaps None, the rank and the size that a group is made with.

    Raises:
        TypeError: it is made with something else.
    """
    store, *numbers = place if len(place) == 3 else (None, *place)
    if len(numbers) != 2 or not all(isinstance(number, int) for number in numbers):
        raise TypeError(
            "__init__(): incompatible constructor arguments. The following argument types are supported:\n"
            f"    1. torch._C._distributed_c10d.{what}(rank: typing.SupportsInt, size: typing.SupportsInt)\n"
            f"    2. torch._C._distributed_c10d.{what}(store: torch._C._distributed_c10d.Store, "
            f"rank: typing.SupportsInt, size: typing.SupportsInt)\n\nInvoked with: {', '.join(map(repr, place))}"
        )
    return store, numbers[0], numbers[1]
