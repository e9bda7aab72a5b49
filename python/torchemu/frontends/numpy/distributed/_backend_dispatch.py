"""Dispatch: a group that is not on the fabric calls the methods of its own class, or those of backends that are
registered for types of devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchemu.c10d.backend_registry import BackendType
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
class Call:
    """A collective, as _issue.issue is told of it.

    Attributes:
        name, kind, op, root: the parts of go.Issue's call.
        outs, ins: what the rank receives and gives.
        async_op: the program waits by itself.
        size: how many ranks the group has.
    """

    name: str
    kind: str
    op: str
    root: int
    outs: Sequence[Tensor]
    ins: Sequence[Tensor]
    async_op: bool
    size: int

    def reducing(self, options: type[AllreduceOptions]) -> AllreduceOptions:
        """Options with the reduction."""
        return options(asyncOp=self.async_op, reduceOp=reduction_of(self.op))

    def rooted(self, options: Callable[..., Any], **others: Any) -> Any:
        """Options with the root."""
        return options(asyncOp=self.async_op, rootRank=self.root, **others)

    def gathered(self) -> list[Tensor]:
        """A tensor for each rank to receive into; none on a rank that does not."""
        return _parts(self.outs, self.size)

    def scattered(self) -> list[Tensor]:
        """A tensor for each rank to give; none on a rank that does not."""
        return _parts(self.ins, self.size)


def _parts(tensors: Sequence[Tensor], size: int) -> list[Tensor]:
    if len(tensors) != 1 or size == 1:
        return list(tensors)
    flat = tensors[0].view(-1)
    return list(flat.split(flat.numel() // size)) if flat.numel() else [flat] * size


def _rows(tensors: Sequence[Tensor]) -> list[int]:
    """The numbers of rows for each rank; none where they are equal."""
    return [int(rows) for rows in getattr(tensors, "text", "").split("/")[1:]]


def _all_gather_coalesced(c: Call) -> tuple[Any, ...]:
    each = len(c.ins)
    blocks = [list(c.outs[i : i + each]) for i in range(0, len(c.outs), each)]
    return blocks, list(c.ins), AllgatherOptions(asyncOp=c.async_op)


def _all_to_all_single(c: Call) -> tuple[Any, ...]:
    return c.outs[0], c.ins[0], _rows(c.outs), _rows(c.ins), AllToAllOptions(asyncOp=c.async_op)


def _several(options: Callable[[Call], Any]) -> Callable[[Call], tuple[Any, ...]]:
    return lambda c: (list(c.outs), list(c.ins), options(c))


def _gathering(c: Call) -> AllgatherOptions:
    return AllgatherOptions(asyncOp=c.async_op)


def _scattering(c: Call) -> Any:
    return c.reducing(ReduceScatterOptions)


def _rows_of_lists(lists: list[Tensor]) -> list[list[Tensor]]:
    return [lists] if lists else []


_METHODS: dict[str, tuple[str, Callable[[Call], tuple[Any, ...]]]] = {
    "all_reduce": ("allreduce", lambda c: (list(c.ins), c.reducing(AllreduceOptions))),
    "all_reduce_coalesced": ("allreduce_coalesced", lambda c: (list(c.ins), c.reducing(AllreduceCoalescedOptions))),
    "reduce": ("reduce", lambda c: (list(c.ins), c.rooted(ReduceOptions, reduceOp=reduction_of(c.op)))),
    "broadcast": ("broadcast", lambda c: (list(c.outs), c.rooted(BroadcastOptions))),
    "all_gather": ("allgather", lambda c: ([c.gathered()], list(c.ins), _gathering(c))),
    "all_gather_into_tensor": ("_allgather_base", lambda c: (c.outs[0], c.ins[0], _gathering(c))),
    "all_gather_into_tensor_coalesced": ("allgather_into_tensor_coalesced", _several(_gathering)),
    "all_gather_coalesced": ("allgather_coalesced", _all_gather_coalesced),
    "gather": ("gather", lambda c: (_rows_of_lists(c.gathered()), list(c.ins), c.rooted(GatherOptions))),
    "scatter": ("scatter", lambda c: (list(c.outs), _rows_of_lists(c.scattered()), c.rooted(ScatterOptions))),
    "reduce_scatter": ("reduce_scatter", lambda c: (list(c.outs), [c.scattered()], _scattering(c))),
    "reduce_scatter_tensor": ("_reduce_scatter_base", lambda c: (c.outs[0], c.ins[0], _scattering(c))),
    "reduce_scatter_tensor_coalesced": ("reduce_scatter_tensor_coalesced", _several(_scattering)),
    "all_to_all": ("alltoall", _several(lambda c: AllToAllOptions(asyncOp=c.async_op))),
    "all_to_all_single": ("alltoall_base", _all_to_all_single),
    "barrier": ("barrier", lambda c: (BarrierOptions(asyncOp=c.async_op),)),
}
"""The method of process groups that does each operation, and what it is called with. Collectives of objects are not
here: they are those that their bytes go through."""


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

    def collective(self, call: str, outs: Sequence[Tensor], ins: Sequence[Tensor], async_op: bool) -> Any:
        """Does a collective, and returns its work; without async_op waits for it, and returns None."""
        name, kind, op, root = call.split("|")
        about = Call(name, kind, op, int(root), outs, ins, async_op, self._group.size())
        method, arguments = _METHODS.get(name) or _METHODS[kind]
        work = self._called(method, [*outs, *ins], *arguments(about))
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
        """What is registered for the device of tensors; without any, for the first type of device."""
        return self.backend(tensors[0].device.type) if tensors else self.any_backend()

    def any_backend(self) -> Any:
        """What is registered for the first type of device."""
        return self.backend(next(iter(self._backends), CPU))

    def backend(self, kind: str) -> Any:
        """What is registered for a type of device.

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
        """What the group's own class calls it, or else the kind of its backend."""
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
