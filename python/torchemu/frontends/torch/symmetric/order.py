"""Barriers and signals between the ranks of a rendezvous.

They are of the current stream, as on a device. Elements are moved when the host calls, so the host waits where order
matters, too: until the others have called what they have to, in no simulated time.
"""

from __future__ import annotations

from collections import deque
from datetime import timedelta

import torch
from torch.utils._python_dispatch import _disable_current_modes

from torchemu.bridge.binding import go
from torchemu.bridge.calls import Call
from torchemu.c10d.work import wait_on_host
from torchemu.frontends.torch.device import deferral, places
from torchemu.frontends.torch.groups import AhbmGroup
from torchemu.frontends.torch.membership import shared
from torchemu.frontends.torch.works import AhbmWork
from torchemu.runtime import current

PAD_SIZE = 9216
"""Bytes of a signal pad."""

_SLOT = 4  # bytes of a signal

_SIGNALS = "signals: put_signal is a send, wait_signal a recv, and a channel a tag"
"""The group of signals, as reports of what waits name it."""

_BARRIER = Call.of("barrier", "all_reduce", "max")


class Order:
    """The barriers and signals of one rendezvous, as one of its ranks calls them.

    Args:
        name: of the rendezvous; the ranks have the same.
        rank: this one's in the group.
        members: the World's ranks of the group, by group rank.
        where: this rank's device.
    """

    def __init__(self, name: str, rank: int, members: tuple[int, ...], where: places.Place) -> None:
        self.name, self._rank, self._members, self._where = name, rank, members, where
        self._groups: dict[str, AhbmGroup] = {}
        self._sent: dict[tuple[str, int, int], AhbmWork] = {}
        self._own: dict[tuple[str, int], deque[torch.cuda.Event]] = {}  # signals to itself

    def barrier(self, channel: int, timeout_ms: int = 0) -> None:
        """Makes the current stream wait until all ranks' streams have come here.

        Args:
            channel: barriers of different channels have nothing to do with each other.
            timeout_ms: how long the host waits for it, in simulated time; 0: it does not.

        Raises:
            RuntimeError: no such channel; the timeout has passed.
        """
        self._check_channel(channel)
        settle()
        work = self._group(f"barriers, channel {channel}")._issue(_BARRIER, [self._token()], None, [])
        _wait(work, timeout_ms, f"barrier (channel {channel})")

    def put_signal(self, to: int, channel: int, kind: str = _SIGNALS) -> None:
        """Signals a rank, once the current stream is there and the signal before, on the channel, was waited for.

        Args:
            kind: signals of different kinds have nothing to do with each other.

        Raises:
            RuntimeError: no such rank or channel.
        """
        self._check_rank("put_signal", to)
        self._check_channel(channel)
        settle()
        if to == self._rank:
            event = torch.cuda.Event()
            event.record()
            self._own.setdefault((kind, channel), deque()).append(event)
            return
        before = self._sent.get((kind, to, channel))
        if before is not None:
            go.StreamWait(current().stream, before.handle)
        work = self._group(kind).send([self._token()], to, channel)
        work.is_over()
        self._sent[kind, to, channel] = work

    def wait_signal(self, source: int, channel: int, timeout_ms: int = 0, kind: str = _SIGNALS) -> None:
        """Makes the current stream wait for a rank's next signal on the channel.

        Args:
            timeout_ms: how long the host waits for it, in simulated time; 0: it does not.

        Raises:
            RuntimeError: no such rank or channel; the timeout has passed; the rank waits for a signal of its own, which
                it has not sent.
        """
        self._check_rank("wait_signal", source)
        self._check_channel(channel)
        settle()
        if source == self._rank:
            self._wait_for_own(kind, channel)
            return
        work = self._group(kind).recv([self._token()], source, channel)
        _wait(work, timeout_ms, f"wait_signal from rank {source} (channel {channel})")

    def _wait_for_own(self, kind: str, channel: int) -> None:
        sent = self._own.get((kind, channel))
        if not sent:
            raise RuntimeError(
                f"SymmetricMemory::wait_signal: rank {self._rank} waits for a signal of its own on channel {channel}, "
                "which it has not sent: it would wait for ever"
            )
        torch.cuda.current_stream().wait_event(sent.popleft())

    def meet(self) -> None:
        """Waits until all ranks have come here, and their streams."""
        settle()
        work = self._group("rendezvous")._issue(_BARRIER, [self._token()], None, [])
        work.block_current_stream()

    def _group(self, what: str) -> AhbmGroup:
        """Returns the group for one kind of operation: kinds have orders of their own."""
        if what not in self._groups:
            membership = shared(f"{self.name}, {what}", self._members, are_world_ranks=True)
            self._groups[what] = AhbmGroup(None, self._rank, membership, "nccl")
        return self._groups[what]

    def _token(self) -> torch.Tensor:
        """Returns a byte on the device, which no operation has filled."""
        with _disable_current_modes():
            return places.name(torch.empty(1, dtype=torch.uint8), self._where)

    def _check_rank(self, function: str, rank: int) -> None:
        size = len(self._members)
        if not 0 <= rank < size:
            raise RuntimeError(f"SymmetricMemory::{function}: there is no rank {rank}: the group has {size}")

    def _check_channel(self, channel: int) -> None:
        operations, most = "channel for barrier(), put_signal() and wait_signal()", self._channels() - 1
        if channel < 0:
            raise RuntimeError(f"{operations} must be greater than 0 (got {channel})")
        if channel > most:
            raise RuntimeError(f"The maximum supported {operations} is {most} (got {channel})")

    def _channels(self) -> int:
        return PAD_SIZE // _SLOT // len(self._members)


def settle() -> None:
    """Computes what the rank has put off: peers look at its memory next."""
    if deferral.current().works:
        deferral.current().catch_up()


def _wait(work: AhbmWork, timeout_ms: int, what: str) -> None:
    """Makes the current stream wait for a work, and the host until the others have done their part."""
    work.is_over()
    if timeout_ms > 0:
        late = f"SymmetricMemory: {what} timed out after {timeout_ms} ms"
        wait_on_host(work.handle, timedelta(milliseconds=timeout_ms), late)
    work.block_current_stream()
