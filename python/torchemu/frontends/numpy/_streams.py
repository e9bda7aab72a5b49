"""torch.Stream and torch.Event: orders in which a rank's device runs operations, and places in them.

A stream is the Go core's; see torchemu/stream.go. Operations that one stream runs follow each other in simulated time,
those of several run beside each other and share the device and its links.
"""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.frontends.numpy import _device, _settings
from torchemu.runtime import fibers
from torchemu.runtime.rank_local import RankLocal, ThreadLocal
from torchemu.runtime.stream_order import Known, begin
from torchemu.runtime.streams import EventMethods, StreamMethods
from torchemu.runtime.thread_state import Kept, keep
from torchemu.runtime.waiting import Looks


class Stream(StreamMethods):
    """An order of operations on this rank's device. As a context manager it is the current stream meanwhile.

    Args:
        device: a simulated device; its streams are the rank's, whichever it is.
        priority: accepted, and without effect: streams share the device evenly.

    Attributes:
        device: the rank's current device when the stream was made.
        stream_id: the stream's number in its rank; that of the default stream is 0.
        priority: 0.

    Raises:
        RuntimeError: the device is the host.
        ValueError: the topology has no such device.
    """

    __slots__ = ("__weakref__", "_before", "_handle", "device", "stream_id")

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        begin(runtime.current(), _SPARED.get())
        self._add(device)

    def _add(self, device: Any = None) -> None:
        """Makes it another stream of the rank."""
        context = runtime.current()
        self._bind(Handle(go.NewStream(context.world.handle, context.rank)), device)
        context.streams += 1

    def _bind(self, handle: Handle, device: Any) -> None:
        self._handle = handle
        self.device: _device.device = of_sip(device)
        self.stream_id: int = go.StreamNumber(handle.number)
        self._before: list[Stream] = []

    @property
    def device_index(self) -> int:
        """The number of the device."""
        assert self.device.index is not None
        return self.device.index

    @property
    def device_type(self) -> str:
        """Returns what the rank's program calls the device: "ahbm" or "cuda"."""
        return self.device.type

    @property
    def cuda_stream(self) -> int:
        """The stream as a number: unlike PyTorch's it is no pointer."""
        return self.stream_id

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event, a new one where none is given, and returns it."""
        event = DeviceEvent() if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        self._before.append(current_stream())
        set_stream(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        set_stream(self._before.pop())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return self.stream_id == other.stream_id and self.device == other.device

    def __hash__(self) -> int:
        return hash((self.stream_id, self.device))

    def __repr__(self) -> str:
        return f"<torch.Stream device={self.device} stream_id={self.stream_id}>"


class Event(EventMethods):
    """A place in a stream: it ends when all operations have ended that were on the stream when it was recorded.

    Args:
        enable_timing: elapsed_time() may be asked.
        blocking, interprocess: accepted, and without effect.

    Attributes:
        enable_timing: whether elapsed_time() may be asked.
    """

    __slots__ = ("__weakref__", "_handle", "_known", "_looks", "device", "enable_timing")

    def __init__(
        self, device: Any = None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self.enable_timing = enable_timing
        self.device: _device.device | None = None if device is None else of_sip(device)
        self._handle: Handle | None = None
        self._known: Known | None = None  # what is over once it is, where the rank keeps its streams' order

    def record(self, stream: Stream | None = None) -> None:
        """Sets the event to where a stream is now, the current one where none is given."""
        stream = current_stream() if stream is None else stream
        self._handle = Handle(go.StreamRecord(stream._handle.number))
        self._looks = Looks("query()")
        self.device = stream.device
        order = runtime.current().stream_order
        self._known = None if order is None else order.here(stream.stream_id)

    def wait(self, stream: Stream | None = None) -> None:
        """Makes operations that are put on a stream from now on start after the event; on the current one where none
        is given. The host goes on. An event that was never recorded is over."""
        if self._handle is not None:
            stream = current_stream() if stream is None else stream
            go.StreamWait(stream._handle.number, self._handle.number)
            order = runtime.current().stream_order
            if order is not None and self._known is not None:
                order.wait(stream.stream_id, self._known)

    def query(self) -> bool:
        """Reports whether the event is over by the present simulated time, as one is that was never recorded. Asking in
        vain takes time, in which other ranks run: a program may ask in a loop."""
        over = self._handle is None or self._looks.at(self._handle.number)
        if over:
            self._is_over()
        return over

    def synchronize(self) -> None:
        """Blocks the host until the event is over."""
        if self._handle is not None:
            runtime.current().wait(self._handle.number)
            self._is_over()

    def _is_over(self) -> None:
        order = runtime.current().stream_order
        if order is not None and self._known is not None:
            order.wait_on_host(self._known)

    def __repr__(self) -> str:
        return f"<torch.Event device={self.device} event_id={self.event_id}>"


class DeviceEvent(Event):
    """torch.cuda.Event: an Event whose first argument is another.

    Args:
        enable_timing: elapsed_time() may be asked.
        blocking, interprocess, external: accepted, and without effect.
    """

    __slots__ = ()

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        super().__init__(enable_timing=enable_timing)


class StreamContext:
    """The context manager that stream() returns: its stream, if there is one, is the current one in the with block."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *error: Any) -> None:
        if self.stream is not None:
            self.stream.__exit__(*error)


def of_sip(where: Any) -> _device.device:
    """The device that is meant: None is the rank's current one.

    Raises:
        RuntimeError: it is the host.
        ValueError: the topology has no such device.
    """
    from torchemu.frontends.numpy.ahbm import checked

    context = runtime.current()
    if where is None:
        return _device.known(_settings.current().accelerator, context.device)
    meant = _device.device(where)
    if meant.is_host:
        raise RuntimeError(f"{meant} is the host: streams and events are those of simulated devices")
    return _device.known(meant.type, context.device if meant.index is None else checked(meant.index))


def _existing(handle: int) -> Stream:
    stream = Stream.__new__(Stream)
    stream._bind(Handle(handle), None)
    return stream


def _default() -> Stream:
    context = runtime.current()
    return _existing(go.DefaultStream(context.world.handle, context.rank))


_DEFAULT: RankLocal[Stream] = RankLocal(_default)
_SPARED: RankLocal[set[int]] = RankLocal(set)  # numbers of streams that the program has not made
_CURRENT: ThreadLocal[Stream] = ThreadLocal(_DEFAULT.get)


def _of_new_thread() -> Stream | None:
    """The current stream that a thread of the rank begins with: the default one, as in PyTorch. But where gloo does
    what devices do here there are no streams, and a host that waits for an operation of its own waits for no other
    thread's. None is for ranks on threads, whose streams are another torch's.
    """
    context = runtime.current()
    if isinstance(context.world.fibers, fibers.Threads):
        return None
    group = context.group or context.inherited
    if group is not None and not group.holds_hosts:
        return _DEFAULT.get()
    return unasked()


def unasked() -> Stream:
    """Returns a stream that the program has not asked for: reads and writes on it are in no order of the program's."""
    own = Stream.__new__(Stream)
    own._add()
    _SPARED.get().add(own.stream_id)
    return own


def pooled() -> Stream:
    """Returns one of 32 streams that the program has not asked for, in turn: PyTorch, too, has a pool of them for
    callbacks."""
    pool = _POOL.get()
    if len(pool) == _POOLED:
        pool.rotate(-1)
    else:
        pool.append(unasked())
    return pool[-1]


_POOLED = 32
_POOL: RankLocal[deque[Stream]] = RankLocal(deque)


def _begin_on(stream: Stream | None) -> None:
    """Makes a new thread's first stream its current one; later it is among what the thread has of its own."""
    if stream is not None:
        runtime.current().stream = stream._handle.number
        _CURRENT.set(stream)


keep(Kept(save=lambda: None, restore=_begin_on, first=_of_new_thread))


def default_stream(device: Any = None) -> Stream:
    """The stream that a rank begins with."""
    of_sip(device)
    return _DEFAULT.get()


def current_stream(device: Any = None) -> Stream:
    """The stream that the operations of this thread of the rank are put on."""
    of_sip(device)
    return _CURRENT.get()


def current() -> Stream:
    """The same, for who has no device to check."""
    return _CURRENT.get()


def set_stream(stream: Stream | None) -> None:
    """Makes a stream the current one. None is for functions that may have none, and does nothing."""
    if stream is not None:
        _CURRENT.set(stream)
        runtime.current().stream = stream._handle.number


def stream(stream: Stream | None) -> StreamContext:
    """A context manager that makes a stream the current one; None leaves the one that is."""
    return StreamContext(stream)


def synchronize(device: Any = None) -> None:
    """Blocks the host until all operations have ended that this rank has issued, on whichever stream."""
    of_sip(device)
    runtime.current().synchronize()
