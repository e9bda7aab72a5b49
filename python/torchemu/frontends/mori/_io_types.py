"""Types of mori.io: backends, descriptions of engines and memory, and how transfers stand."""

from __future__ import annotations

import enum
import json
import warnings
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.frontends.mori._unwaited import NO_USE, Use
from torchemu.runtime.waiting import Looks

BackendType = enum.Enum("BackendType", "Unknown XGMI RDMA TCP", start=0)
"""By what engines transfer."""

MemoryLocationType = enum.Enum("MemoryLocationType", "Unknown CPU GPU", start=0)
"""The kinds of memory."""

PollCqMode = enum.Enum("PollCqMode", "POLLING EVENT", start=0)
"""The ways in which workers learn of ends of transfers."""


class StatusCode(enum.IntEnum):
    """The states of a transfer."""

    SUCCESS = 0
    INIT = 1
    IN_PROGRESS = 2
    ERR_INVALID_ARGS = 11
    ERR_NOT_FOUND = 12
    ERR_BAD_STATE = 14


@dataclass
class IOEngineConfig:
    """The address of an engine: accepted, and in its description.

    Args:
        host, port: of the listener.
    """

    host: str = ""
    port: int = 0


@dataclass
class RdmaBackendConfig:
    """The settings of transfers over network cards.

    Args:
        qp_per_transfer: queue pairs that a transfer is dealt out to.
        post_batch_size, num_worker_threads, poll_cq_mode: accepted.
        enable_transfer_chunking: transfers go in pieces.
        chunk_bytes: of such a piece.
        num_nics_per_transfer, max_send_wr, max_cqe_num, max_msg_sge: accepted.
    """

    qp_per_transfer: int = 1
    post_batch_size: int = -1
    num_worker_threads: int = 1
    poll_cq_mode: Any = PollCqMode.POLLING
    enable_transfer_chunking: bool = False
    chunk_bytes: int = 64 << 10
    num_nics_per_transfer: int = 1
    max_send_wr: int = 0
    max_cqe_num: int = 0
    max_msg_sge: int = 0


class _Packed:
    """A description that crosses between programs as bytes."""

    def pack(self) -> bytes:
        """Returns it as bytes."""
        return json.dumps(asdict(self), default=lambda value: value.name).encode()  # type: ignore[call-overload]

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Returns what pack has made bytes of.

        Raises:
            ValueError: the bytes are no such description.
        """
        try:
            found = json.loads(packed)
            if set(found) != {f.name for f in fields(cls)}:  # type: ignore[arg-type]
                raise ValueError(f"it has {', '.join(found)}")
        except (ValueError, TypeError) as error:
            raise ValueError(f"these {len(packed)} bytes are no packed {cls.__name__}: {error}") from None
        return cls(**cls._typed(found))

    @classmethod
    def _typed(cls, found: dict[str, Any]) -> dict[str, Any]:
        return found


@dataclass(frozen=True)
class EngineDesc(_Packed):
    """An engine, as others know it.

    Attributes:
        key: its name.
        host, port: where it listens.
        rank: whose it is.
    """

    key: str
    host: str
    port: int
    rank: int


@dataclass(frozen=True)
class MemoryDesc(_Packed):
    """Memory that an engine knows.

    Attributes:
        engine_key: whose it is.
        id: its number there.
        device_id: of its device; -1 of the host's.
        data: its address in the process.
        size: its bytes.
        loc: where it is.
        place: its address for device programs.
    """

    engine_key: str
    id: int
    device_id: int
    data: int
    size: int
    loc: Any
    place: int

    @classmethod
    def _typed(cls, found: dict[str, Any]) -> dict[str, Any]:
        return found | {"loc": MemoryLocationType[found["loc"]]}


class TransferStatus:
    """The state of a transfer, which its engine changes.

    Args:
        code: what it has failed with, if it has not begun.
        message: why.
    """

    def __init__(self, code: StatusCode = StatusCode.INIT, message: str = "") -> None:
        self._code, self._message = code, message
        self._end: Handle | None = None
        self._use = NO_USE
        self._looks = Looks("InProgress()")

    def begin(self, end: Handle, use: Use) -> None:
        """Notes that it is under way until an event, and uses memory."""
        self._code, self._end, self._use = StatusCode.IN_PROGRESS, end, use

    def _look(self, wait: bool = False) -> StatusCode:
        if self._code is StatusCode.IN_PROGRESS and self._end is not None:
            if wait:
                runtime.current().wait(self._end.number)
            if wait or self._looks.at(self._end.number):
                self._code, self._message = StatusCode.SUCCESS, "SUCCESS"
                self._use.end()
        return self._code

    def end_time(self) -> int:
        """Returns when it has ended, in picoseconds; 0 if it has not begun."""
        return 0 if self._end is None else int(go.EventTime(self._end.number))

    def Init(self) -> bool:  # noqa: N802 (mori's name)
        """Says whether it has not begun."""
        return self._code is StatusCode.INIT

    def InProgress(self) -> bool:  # noqa: N802
        """Says whether it is under way. Asking in vain takes time."""
        return self._look() is StatusCode.IN_PROGRESS

    def Succeeded(self) -> bool:  # noqa: N802
        """Says whether it is over and has succeeded."""
        return self._look() is StatusCode.SUCCESS

    def Failed(self) -> bool:  # noqa: N802
        """Says whether it has failed."""
        return self._look() >= StatusCode.ERR_INVALID_ARGS

    def Code(self) -> StatusCode:  # noqa: N802
        """Returns how it stands."""
        return self._look()

    def Message(self) -> str:  # noqa: N802
        """Returns why it has failed, or that it has not."""
        return self._message

    def Wait(self) -> StatusCode:  # noqa: N802
        """Blocks the host until it is over, and returns how it stands. One that has failed is a warning, too: who waits
        for it may go on with memory to which nothing has come."""
        code = self._look(wait=True)
        if code >= StatusCode.ERR_INVALID_ARGS:
            context = runtime.current()
            file, line, _ = context.world.place()
            text = f"rank {context.rank} waits for a transfer that has failed with {code.name}: {self._message}"
            warnings.warn_explicit(text, RuntimeWarning, file, line)
        return code
