"""Operations on words and bytes that a host puts on a stream, by addresses and numbers of streams."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.frontends.triton import _shmem
from torchemu.frontends.triton._program import current
from torchemu.frontends.triton_dist._symmetric import HostOperation, on_stream
from torchemu.language._machine import machine_of

_WRITE, _WAIT, _COPY = HostOperation("cuStreamWriteValue"), HostOperation("cuStreamWaitValue"), HostOperation("copy")
_PUT = HostOperation("putmem_signal_on_stream")


@contextlib.contextmanager
def numbered(stream: Any) -> Iterator[None]:
    """Makes a stream the current one for the duration of a with block: a stream, its number, or None for the current.

    Raises:
        ValueError: there is no such stream.
    """
    number = getattr(stream, "cuda_stream", stream)
    if number is None:
        yield
        return
    context = runtime.current()
    handle = Handle(go.StreamNumbered(context.world.handle, context.rank, int(number)))
    before, context.stream = context.stream, handle.number
    try:
        yield
    finally:
        context.stream = before


def place(address: Any) -> int:
    """Returns the machine's address of a place in the process, of whichever rank's memory it is.

    Raises:
        ValueError: it is in no memory that other ranks reach.
    """
    context = runtime.current()
    address = int(address)
    found = go.PrimHolding(machine_of(context.world).handle, address, context.rank)
    if not found:
        raise ValueError(
            f"address {address:#x} is in no symmetric memory: it has to be a tensor's of nvshmem_create_tensor"
        )
    start, begin, _ = found
    return int(start + address - begin)


def write_value(stream: Any, address: Any, value: int, size: int) -> None:
    """Puts a write of a word on a stream."""
    at = place(address)

    def write() -> None:
        program = current()
        program.call(go.PrimOrder, "quiet_all")
        program.call(go.PrimSignal, at, size, 1, int(value))
        program.call(go.PrimOrder, "quiet")

    with numbered(stream):
        on_stream(_WRITE, write)


_HOW = {0: _shmem.GE, 1: _shmem.EQ}


def wait_value(stream: Any, address: Any, value: int, flags: Any, size: int) -> None:
    """Puts a wait for a word on a stream: until it is at least a value (0), or equal to it (1).

    Raises:
        NotImplementedError: another comparison.
    """
    how = _HOW.get(int(flags))
    if how is None:
        raise NotImplementedError(f"cuStreamWaitValue with flags {int(flags)}: there are GEQ 0 and EQ 1")
    at = place(address)

    def wait() -> None:
        current().call(go.PrimAwait, at, size, how, int(value))

    with numbered(stream):
        on_stream(_WAIT, wait)


def copy(stream: Any, dst: Any, src: Any, nbytes: int) -> None:
    """Puts a copy between two places on a stream: a copy engine's."""
    to, source = place(dst), place(src)

    def move() -> None:
        program = current()
        if nbytes:
            event = go.PrimCopy(program.handle, program.line(), to, source, nbytes)
            program.call(go.PrimWaitEvent, event)
            go.Release(event)

    with numbered(stream):
        on_stream(_COPY, move)


def put_signal(dst: Any, src: Any, nbytes: int, word: Any, value: int, op: Any, pe: int, stream: Any) -> None:
    """Puts a put with a signal on a stream."""
    to, source, at = place(dst), place(src), place(word)
    how = _shmem.operation(int(op))

    def put() -> None:
        program = current()
        target, signal = _shmem.on(program, to, pe), _shmem.on(program, at, pe)
        if nbytes:
            program.call(go.PrimPut, target, source, nbytes, True, signal, 8, how, int(value))
        else:
            program.call(go.PrimSignal, signal, 8, how, int(value))

    with numbered(stream):
        on_stream(_PUT, put)
