"""torch.cuda.Stream and torch.cuda.Event, and which stream is current: the core's streams under PyTorch's names."""

from __future__ import annotations

from typing import Any

import torch

from torchemu.frontends.torch.device import places
from torchemu.frontends.torch.device.ground import Handle, Looks, RankLocal, ThreadLocal, context, go
from torchemu.runtime import capture as captures
from torchemu.runtime.stream_order import Known, begin
from torchemu.runtime.streams import EventMethods, StreamMethods

_CUDA_TYPE = 1
"""The number of CUDA among PyTorch's types of devices."""

_HIGHEST = -3
"""The priority of what comes first on a GPU."""

_Stream: Any = torch._C.Stream


class Stream(StreamMethods, _Stream):
    """An order of operations on the rank's device. As a context manager it is the current stream meanwhile.

    Args:
        device: a simulated device; its streams are the rank's, whichever it is.
        priority: from 0 down to -3, which comes first on a GPU; without effect: streams share the device evenly.
    """

    def __new__(cls, device: Any = None, priority: int = 0, **numbers: Any) -> Stream:
        if "stream_id" in numbers:
            return _known(numbers["stream_id"])
        rank = context()
        begin(rank)
        rank.streams += 1
        made = cls._over(Handle(go.NewStream(rank.world.handle, rank.rank)), device)
        made.priority = max(_HIGHEST, min(priority, 0))
        return made

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Returns the least and the greatest priority, which are an H100's."""
        return 0, _HIGHEST

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    @classmethod
    def _over(cls, handle: Handle, device: Any = None) -> Stream:
        where = places.meant(torch.device("cuda") if device is None else device)
        if where is None or not places.is_simulated(where):
            raise RuntimeError(f"{device} is the host: streams and events are those of simulated devices")
        number = go.StreamNumber(handle.number)
        made: Stream = _Stream.__new__(cls, stream_id=number, device_index=where.index, device_type=_CUDA_TYPE)
        made._handle, made._before = handle, []
        made._is_default = number == 0
        _STREAMS.get()[number] = made
        return made

    @property
    def handle(self) -> int:
        """The core's number of it."""
        return self._handle.number

    @property
    def cuda_stream(self) -> int:
        """The stream as a number: unlike PyTorch's it is no pointer."""
        return int(self.stream_id)

    def record_event(self, event: Any = None) -> Any:
        """Records an event, a new one where none is given, and returns it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def is_capturing(self) -> bool:
        """Says whether a graph is being captured."""
        return captures.current() is not None

    @property
    def native_handle(self) -> int:
        """The same as cuda_stream."""
        return self.cuda_stream

    @property
    def _as_parameter_(self) -> Any:
        import ctypes

        return ctypes.c_void_p(self.cuda_stream)

    def __enter__(self) -> Stream:
        self._before.append(current_stream())
        set_stream(self)
        return self

    def __exit__(self, *_: Any) -> None:
        set_stream(self._before.pop())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.stream_id == other.stream_id and self.device == other.device

    def __hash__(self) -> int:
        return hash((self.stream_id, self.device))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class Event(EventMethods):
    """A place in a stream: it ends when all has ended that was on the stream when it was recorded.

    Args:
        enable_timing: elapsed_time() may be asked.
        blocking, interprocess, external: accepted, and without effect.
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        self.enable_timing = enable_timing
        self.device: torch.device | None = None
        self._handle: Handle | None = None
        self._known: Known | None = None

    cuda_event = EventMethods.event_id

    def record(self, stream: Any = None) -> None:
        """Sets the event to where a stream is now, the current one where none is given."""
        stream = current_stream() if stream is None else stream
        context().issue()
        self._handle = Handle(go.StreamRecord(stream.handle))
        self._looks = Looks("query()")
        self.device = stream.device
        order = context().stream_order
        self._known = None if order is None else order.here(int(stream.stream_id))
        capture = captures.current()
        if capture is not None:
            with stream:
                capture.note(self.record, ())

    def wait(self, stream: Any = None) -> None:
        """Makes operations that are put on a stream from now on start after the event; on the current one where none
        is given. The host goes on. An event that was never recorded is over."""
        if self._handle is not None:
            rank, capture = context(), captures.current()
            rank.issue()
            stream = current_stream() if stream is None else stream
            if capture is not None:
                with stream:
                    capture.note(self.wait, ())
            go.StreamWait(stream.handle, self._handle.number)
            if rank.stream_order is not None and self._known is not None:
                rank.stream_order.wait(int(stream.stream_id), self._known)

    def query(self) -> bool:
        """Reports whether the event is over by the present simulated time. Asking in vain takes time."""
        over = self._handle is None or self._looks.at(self._handle.number)
        if over:
            self._is_over()
        return over

    def synchronize(self) -> None:
        """Blocks the host until the event is over."""
        refuse_while_capturing("Event.synchronize")
        if self._handle is not None:
            context().wait(self._handle.number)
            self._is_over()

    def _is_over(self) -> None:
        order = context().stream_order
        if order is not None and self._known is not None:
            order.wait_on_host(self._known)

    def ipc_handle(self) -> bytes:
        """Refuses: ranks share no events."""
        raise RuntimeError("torch.cuda.Event.ipc_handle: simulated ranks share no events")

    def __repr__(self) -> str:
        return (
            f"<torch.cuda.Event {self.event_id:#x}>" if self._handle is not None else "<torch.cuda.Event uninitialized>"
        )


class DeviceEvent(Event):
    """torch.Event: an Event whose first argument is the device.

    Args:
        device: a simulated device.
        enable_timing: elapsed_time() may be asked.
        blocking, interprocess: accepted, and without effect.
    """

    def __init__(
        self, device: Any = None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        super().__init__(enable_timing)
        self.device = places.meant(torch.device("cuda") if device is None else device)


def _default() -> Stream:
    rank = context()
    return Stream._over(Handle(go.DefaultStream(rank.world.handle, rank.rank)))


_STREAMS: RankLocal[dict[int, Stream]] = RankLocal(dict)
_DEFAULT: RankLocal[Stream] = RankLocal(_default)
_CURRENT: ThreadLocal[Stream] = ThreadLocal(_DEFAULT.get)


def _known(number: int) -> Stream:
    return _DEFAULT.get() if number == 0 else _STREAMS.get()[number]


def are_known() -> bool:
    """Says whether the rank has asked for the stream that it begins with."""
    return _DEFAULT.is_there()


def default_stream(device: Any = None) -> Stream:
    """Returns the stream that a rank begins with."""
    return _DEFAULT.get()


def current_stream(device: Any = None) -> Stream:
    """Returns the stream that operations of this thread of the rank are put on."""
    return _CURRENT.get()


def set_stream(stream: Stream | None) -> None:
    """Makes a stream the current one; None, of a function that may have none, does nothing."""
    if stream is not None:
        _CURRENT.set(stream)
        context().stream = stream.handle


def numbered(number: int) -> Stream:
    """Returns the rank's stream of a number."""
    return _known(number)


def number_of(handle: int) -> int:
    """Returns the number of a stream of the core's."""
    return int(go.StreamNumber(handle))


def refuse_while_capturing(what: str) -> None:
    """Raises RuntimeError where a graph is being captured: a host cannot wait for what is not done."""
    if captures.current() is not None:
        raise RuntimeError(f"CUDA error: operation not permitted when stream is capturing: {what}")


def synchronize(device: Any = None) -> None:
    """Blocks the host until all has ended that the rank has issued, on whichever stream."""
    refuse_while_capturing("torch.cuda.synchronize")
    places.meant(device)
    rank = context()
    rank.issue()
    if rank.outstanding is not None:
        rank.outstanding.end_devices()
    if rank.stream_order is not None:
        rank.stream_order.wait_on_host()
    while event := go.Outstanding(rank.world.handle, rank.rank):
        rank.wait(Handle(event).number)
