"""Operations on streams that nothing orders.

Where a World is checked the core hears of each operation of a device, with the memory that it reads and writes. Else a
storage knows the operation that wrote to it last, and streams that read what another one is still to write are reported
as uses before a wait() are; see runtime/outstanding.py. What a backward pass does is left out: PyTorch orders
its streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torchemu.frontends.torch.device import places
from torchemu.frontends.torch.device.ground import Context, go
from torchemu.frontends.torch.memory import regions, whole
from torchemu.frontends.torch.unwaited_uses import elements, operands
from torchemu.runtime import memory_notes, outstanding
from torchemu.runtime.stream_order import Write
from torchemu.runtime.world import call_site


def before(rank: Context, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Reports an operation that reads what another stream is still to write."""
    reads, _ = operands(func, args, kwargs)
    look(rank, func._schema.name.partition("::")[2], reads)


def look(rank: Context, name: str, reads: Sequence[Any]) -> None:
    """The same, of an operation by its name and the tensors that it reads."""
    order, stream = rank.stream_order, None
    if order is None or torch._C._current_graph_task_id() != -1:
        return
    for tensor in reads:
        write = getattr(tensor.untyped_storage(), "_written", None) if tensor.layout is torch.strided else None
        if write is None:
            continue
        stream = go.StreamNumber(rank.stream) if stream is None else stream
        where = elements(tensor)
        if where is not None and not order.follows(stream, write) and write.elements.overlaps(where):
            tensor.untyped_storage()._written = None  # once for each
            outstanding.of(rank).report_order(write, name, stream)


def after(rank: Context, func: Any, args: Sequence[Any], kwargs: dict[str, Any], out: Any, waits: bool) -> None:
    """Notes what an operation has written on the current stream; with waits the host has waited for it. What the host
    computes is on no stream, and there when the call returns."""
    reads, writes = operands(func, args, kwargs)
    writes += [t for t in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(t, torch.Tensor)]
    is_on_host = all(places.of(t) is None for t in (*reads, *writes))
    wrote(rank, func._schema.name.partition("::")[2], writes, waits or is_on_host)
    if waits and rank.stream_order is not None:
        rank.stream_order.wait_on_host(rank.stream_order.here(go.StreamNumber(rank.stream)))


def wrote(rank: Context, name: str, tensors: Sequence[Any], waits: bool = False) -> None:
    """The same, of an operation by its name and the tensors that it writes."""
    order = rank.stream_order
    if order is None or torch._C._current_graph_task_id() != -1:
        return
    stream, site = go.StreamNumber(rank.stream), rank.world.site()
    tick = order.step(stream)
    for tensor in tensors:
        if tensor.layout is torch.strided:
            where = None if waits else elements(tensor)
            tensor.untyped_storage()._written = None if where is None else Write(name, site, stream, tick, where)


def touch(rank: Context, func: Any, args: Sequence[Any], kwargs: dict[str, Any], out: Any, waits: bool) -> None:
    """Tells the core of an operation, of which the host may have waited for the end.

    Raises:
        RaceError: nothing orders it and another use of the same memory.
    """
    if torch._C._current_graph_task_id() != -1:
        return
    reads, writes = operands(func, args, kwargs)
    writes += [t for t in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(t, torch.Tensor)]
    _tell(rank, func._schema.name.partition("::")[2], _kept(reads), _kept(writes), waits)


def touch_copy(rank: Context, func: Any, args: Sequence[Any], kwargs: dict[str, Any], out: Any, late: bool) -> None:
    """The same of a copy. One that the host does not wait for uses the host's memory later where that is
    pinned, as what to() makes is."""
    made = func._schema.name != "aten::copy_"
    target, source = (out, args[0]) if made else (args[0], args[1])
    host = next((t for t in (target, source) if places.of(t) is None), None)
    reads = [source]
    if late and host is not None and host.layout is torch.strided:
        if places.is_pinned(host) or (made and host is target):
            whole(host.untyped_storage())
        elif host is source:
            reads = []  # it was read at once
        else:
            late = False
    _tell(rank, "to" if made else "copy_", _kept(reads), _kept([target]), not late)


def was_read(rank: Context, name: str, tensor: torch.Tensor) -> None:
    """Tells the core that the host, which has waited for its stream, has read a tensor past the dispatcher; or looks.

    Raises:
        RaceError: nothing orders it and another use of the same memory.
    """
    if torch._C._current_graph_task_id() != -1:
        return
    if rank.world.ordered:
        _tell(rank, name, _kept([tensor]), [], True)
    else:
        look(rank, name, [tensor])


def overwrote(rank: Context, name: str, target: torch.Tensor) -> None:
    """Notes, or tells the core, what a graph that is put on the stream again writes into memory of its own.

    Raises:
        RaceError: nothing orders it and another use of the same memory.
    """
    if rank.world.ordered:
        _tell(rank, name, [], _kept([target]), False)
    else:
        wrote(rank, name, [target])


def _kept(tensors: Sequence[Any]) -> list[torch.Tensor]:
    """Returns the tensors in memory that is looked after: that of devices, and what copies use of the host's."""
    return [
        t
        for t in tensors
        if t.layout is torch.strided
        and t.nbytes
        and not t.is_meta
        and (places.of(t) is not None or getattr(t.untyped_storage(), "_known", None) is not None)
    ]


def _note(
    rank: Context, name: str, reads: list[torch.Tensor], writes: list[torch.Tensor], waits: bool
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Notes uses of memory that the core does not know of, and returns the tensors of which it is to be told."""
    moment, left = None, (list[torch.Tensor](), list[torch.Tensor]())
    for tensors, told, is_write in zip((reads, writes), left, (False, True), strict=True):
        for t in tensors:
            storage = t.untyped_storage()
            if waits or getattr(storage, "_known", None) is not None or not t.is_contiguous():
                told.append(t)
                continue
            moment = moment or memory_notes.moment(rank)
            noted = storage.__dict__.setdefault("_noted", [])
            start = t.storage_offset() * t.element_size()
            if not memory_notes.add(noted, start, start + t.nbytes, is_write, name, moment):
                whole(storage)
    return left


def _tell(rank: Context, name: str, reads: list[torch.Tensor], writes: list[torch.Tensor], waits: bool) -> None:
    if not rank.streams:
        reads, writes = _note(rank, name, reads, writes, waits)
    if not reads and not writes:
        return
    on_device = any(places.of(t) is not None for t in (*reads, *writes))
    told = regions([*writes, *reads])
    stream = rank.stream if on_device else 0
    go.TouchRegions(rank.world.handle, rank.rank, stream, name, call_site(), told, len(writes), len(reads), waits)
