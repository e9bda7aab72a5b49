"""Streams that read what another one is still to write: reported as uses before a wait() are.
See runtime/outstanding.py.
A storage knows the operation that wrote to it last. What a backward pass does is left out: PyTorch orders its streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torchemu.frontends.torch.device.ground import Context, go
from torchemu.frontends.torch.looking import elements, operands
from torchemu.runtime import outstanding
from torchemu.runtime.stream_order import StreamOrder, Write


def begin(rank: Context) -> None:
    """Keeps the order of a rank's streams from now on, unless nobody is to hear of it."""
    if rank.stream_order is None and rank.world.unwaited != "off":
        rank.stream_order = StreamOrder()


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
    """Notes what an operation has written on the current stream; with waits the host has waited for it."""
    _, writes = operands(func, args, kwargs)
    made = [t for t in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(t, torch.Tensor)]
    wrote(rank, func._schema.name.partition("::")[2], [*writes, *made], waits)


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
