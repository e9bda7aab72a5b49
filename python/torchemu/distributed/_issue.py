"""How a call of a collective reaches the Go core."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from torchemu import _runtime
from torchemu._binding import go
from torchemu._handles import Handle
from torchemu._tensor import Tensor
from torchemu._tensor.core import aliased_to
from torchemu.distributed._groups import ProcessGroup
from torchemu.distributed._work import Work


def issue(
    group: ProcessGroup, call: str, outs: str, ins: str, async_op: bool, outputs: list[Any], on_host: bool = False
) -> Work | None:
    """Issues a collective; see go.Issue for call, outs and ins.

    Args:
        async_op: return a work; without it the current stream waits for the collective, the host does not.
        outputs: what the work's result is.
        on_host: the work's wait() blocks the host.
    """
    context = _runtime.current()
    handle = go.Issue(group.handle, context.stream, context.world.site(), async_op, call, outs, ins)
    return Work(handle, outputs, on_host) if async_op else None


def finish(group: ProcessGroup, call: str, out: Tensor | None, given: Tensor | None) -> None:
    """Issues a collective of one tensor out and one in, where there are any, and blocks the host until it has ended."""
    context = _runtime.current()
    outs, ins = ("" if t is None else str(t._handle) for t in (out, given))
    work = Handle(go.Issue(group.handle, context.stream, context.world.site(), True, call, outs, ins))
    context.wait(work.number)


def handles(tensors: Sequence[Tensor]) -> str:
    """Tensors, as go.Issue takes them."""
    return ",".join([str(t._handle) for t in tensors])


def joined(parts: Sequence[Tensor]) -> Sequence[Tensor]:
    """A tensor for each rank, or a single one for all where they are the equal parts of it, one after another. Whoever
    passes its handle on keeps it until the core has it."""
    if len(parts) < 2:
        return parts
    first = parts[0]
    storage, shape, strides, at, size = first._storage, first._shape, first._strides, first._offset, first.numel()
    if size == 0 or not first.is_contiguous():
        return parts
    for t in parts:
        if t._storage is not storage or t._offset != at or t._shape != shape or t._strides != strides:
            return parts
        at += size
    return [aliased_to(storage, first.dtype, first.device, (size * len(parts),), (1,), first._offset)]


def refuse_shards(group: ProcessGroup, operation: str) -> None:
    """Raises NotImplementedError for the group of a single worker's shards."""
    if group.sharded:
        raise NotImplementedError(f"{operation} over the shards of a single worker is not supported")


def warn_of_coalesced(operation: str) -> None:
    """Warns that a program calls what PyTorch is going to drop."""
    warnings.warn(
        f"`torch.distributed.{operation}` will be deprecated. If you must use it, please revisit our documentation "
        "later at https://pytorch.org/docs/main/distributed.html#collective-functions",
        FutureWarning,
        stacklevel=3,
    )
