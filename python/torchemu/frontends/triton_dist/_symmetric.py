"""Symmetric memory and operations of the host's on streams: programs of one block that a call puts there."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from typing import Any

from torchemu import dtypes, runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.frontends.triton._granules import GRANULE
from torchemu.frontends.triton._launching import Grid, GridLaunch
from torchemu.frontends.triton._program import Part, asked, current
from torchemu.frontends.triton._shmem import sync_with, team_barrier
from torchemu.language import _windows
from torchemu.language._machine import machine_of
from torchemu.language._symmetric import symmetric_room
from torchemu.runtime.buffer import Buffer, buffer_of, chosen, copy_afar_by
from torchemu.runtime.rank_local import RankLocal

_UNSET = 0xCD


class HostOperation:
    """An operation on a stream, as kernels have a name and a place.

    Args:
        name: in reports.
    """

    collective, interlock = None, False

    def __init__(self, name: str) -> None:
        self.name, self.place = name, ("", 0, name)


class _OnStream(GridLaunch):
    """Its launch."""

    def barrier(self, block: int) -> int:
        """The barrier of the operation on all ranks."""
        return self.machine.barrier(self.kernel, self.ranks, block)


def on_stream(operation: HostOperation, body: Callable[[], None]) -> None:
    """Puts an operation on the current stream: a program of one warp."""
    launch = _OnStream(operation, Grid(1), 1, body)
    launch.site = _site(launch)
    launch.start({})


_COPY = HostOperation("copy_")


def _copied(target: Any, source: Any) -> bool:
    """Puts a copy on the current stream if one of two tensors is another rank's memory.

    Raises:
        NotImplementedError: the types or the shapes differ.
    """
    to, of = buffer_of(target), buffer_of(source)
    if _windows.shown(to.memory) is None and _windows.shown(of.memory) is None:
        return False
    if to.dtype is not of.dtype or tuple(to.shape) != tuple(of.shape):
        raise NotImplementedError(
            f"a copy between ranks of {of.dtype} {list(of.shape)} to {to.dtype} {list(to.shape)}: both are to be alike"
        )
    moves: list[tuple[int, int, int]] = []
    launch = _OnStream(_COPY, Grid(1), 1, lambda: _move(moves))
    launch.site = _site(launch)
    given = launch.start({"target": target, "source": source})
    moves += _moves(to, int(given["target"].data), of, int(given["source"].data))
    return True


def _move(moves: list[tuple[int, int, int]]) -> None:
    program = current()
    program.flush()
    events = [go.PrimCopy(program.handle, program.line(), *move) for move in moves]
    for event in events:
        program.call(go.PrimWaitEvent, event)
        go.Release(event)


def _moves(to: Buffer, target: int, of: Buffer, source: int) -> list[tuple[int, int, int]]:
    """The runs of bytes of a copy: target, source, and how many."""
    size = to.dtype.itemsize
    if to.is_contiguous() and of.is_contiguous():
        return [(target, source, to.nbytes)] if to.nbytes else []
    run, lead = to.shape[-1] * size, to.shape[:-1]
    if to.stride()[-1] != 1 or of.stride()[-1] != 1:
        run, lead = size, to.shape
    steps = [(to.stride()[d] * size, of.stride()[d] * size) for d in range(len(lead))]
    places = itertools.product(*(range(n) for n in lead))
    return [
        (
            target + sum(i * s for i, (s, _) in zip(place, steps, strict=True)),
            source + sum(i * s for i, (_, s) in zip(place, steps, strict=True)),
            run,
        )
        for place in places
    ]


copy_afar_by(_copied)


def _site(launch: GridLaunch) -> int:
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(runtime.PACKAGE):
        frame = frame.f_back
    return launch.machine.line(frame.f_code, frame.f_lineno)


def allocate(shape: Any, dtype: Any) -> Any:
    """Makes a tensor in symmetric memory, in granules of 512 bytes. All ranks call it alike, and wait for each other.

    Raises:
        MismatchError: another rank asks for something else.
        ValueError: memory has run out.
    """
    shape = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    kind = dtypes.parse(str(dtype))
    n = math.prod(shape)
    room = max(1, -(-n * kind.itemsize // GRANULE)) * GRANULE // kind.itemsize
    whole = symmetric_room((room,), kind, shape)
    machine = machine_of(runtime.current().world)
    window = machine.heap.windows[chosen().buffer(whole).memory]
    address = go.PrimAddress(window, runtime.current().rank, 0)
    asked.get()[address] = n * kind.itemsize
    if runtime.current().world.strictness.check:
        _, place, nbytes = go.PrimInProcess(machine.handle, address)
        Part(address, place, nbytes).data[:] = _UNSET
        go.PrimUnset(window)
    return whole[:n].view(shape) if shape else whole[0]


def free(tensor: Any) -> None:
    """Notes that the rank has given symmetric memory back: kernels may not be given it any more.

    Raises:
        RuntimeError: the rank has done that already.
    """
    buffer, context = buffer_of(tensor), runtime.current()
    heap = machine_of(context.world).heap
    window = 0 if buffer is None else heap.windows.get(buffer.memory, 0)
    if window:
        heap.free(window, context.rank)


_theirs: RankLocal[dict[tuple[int, int, str], Any]] = RankLocal(dict)
"""Tensors of peers' memory, by windows, ranks and dtypes: tables may have the addresses of some that the program has
not kept."""


def peer(tensor: Any, rank: int) -> Any:
    """Returns a tensor of another rank's part of symmetric memory, as this rank's threads reach it.

    Raises:
        ValueError: the tensor is not in symmetric memory; the rank is on another node.
    """
    context = runtime.current()
    machine = machine_of(context.world)
    buffer = buffer_of(tensor)
    window = machine.heap.windows.get(buffer.memory)
    if window is None:
        raise ValueError("peers have tensors of symmetric memory only: make it with nvshmem_create_tensor")
    if rank == context.rank:
        return tensor
    if context.node is not None and rank not in context.node:
        raise ValueError(f"memory of rank {rank} is not mapped on rank {context.rank}: they are on different nodes")
    tensors, theirs, key = chosen(), _theirs.get(), (window, rank, buffer.dtype.name)
    if key not in theirs:
        shape = (buffer.memory.nbytes // buffer.dtype.itemsize,)
        number = go.PrimWindowTensor(window, rank, buffer.dtype.name, shape)
        theirs[key] = tensors.of_core(context.world, Handle(number), buffer.dtype, shape)
        _windows.show(tensors.buffer(theirs[key]).memory, window, rank)
        tensors.stand_beside(theirs[key], tensor)
    whole, start = theirs[key], buffer.storage_offset()
    return whole[start : start + buffer.numel()].view(buffer.shape)


def quiet_and_sync() -> None:
    """Waits until all that the rank has sent has landed, and all ranks have come here."""
    program = current()
    program.call(go.PrimOrder, "quiet_all")
    sync_with(program.launch.barrier(0))


def quiet_and_meet(ranks: tuple[int, ...]) -> None:
    """Waits until all that the rank has sent has landed, and some ranks have come here."""
    program = current()
    program.call(go.PrimOrder, "quiet_all")
    sync_with(team_barrier(program, ranks))
