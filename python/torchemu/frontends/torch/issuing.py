"""Process groups issue operations to the core: all of them are looked at, noted and limited in time in one way."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _allow_inflight_collective_as_graph_input

from torchemu import errors, runtime
from torchemu.bridge.binding import go
from torchemu.bridge.calls import Call
from torchemu.c10d.hooks import Hooks
from torchemu.c10d.ops import TABLE
from torchemu.frontends.torch import checks, mirrored_calls, profiles, session, unwaited_uses, works
from torchemu.frontends.torch.device import in_flight, ordering
from torchemu.frontends.torch.membership import Membership
from torchemu.frontends.torch.memory import regions
from torchemu.frontends.torch.naming import Named
from torchemu.frontends.torch.works import AhbmWork
from torchemu.runtime import capture as captures
from torchemu.runtime import footprints, watchdog
from torchemu.runtime.waiting import picoseconds

DEFAULT = timedelta(minutes=30)

_LONG = timedelta(minutes=5)
"""A timeout from which on nobody counts on it: where nothing can happen any more, and no fault is the reason, the
deadlock is reported at once."""

_FOR_EVER = timedelta(days=100)
"""A timeout that is none: picoseconds count 106 days."""

_IN_PLACE = -1
ANY_SOURCE = -1

Tensors = Sequence[torch.Tensor]


class _Collective(NamedTuple):
    """A collective as the rank has called it.

    Attributes:
        outs: what it writes.
        ins: what it reads; None where that is outs.
        result: the value of its future.
        opts: PyTorch's options.
        on_host: its tensors have to be in the host's memory, for NCCL itself would allocate them.
        pieces: what the core is told of in place of outs and ins: blocks of them.
    """

    call: Call
    outs: Tensors
    ins: Tensors | None
    result: Any
    opts: Any
    on_host: bool
    pieces: tuple[Tensors, Tensors] | None

    @property
    def given(self) -> Tensors:
        """The tensors that it reads."""
        return self.outs if self.ins is None else self.ins

    @property
    def is_asynchronous(self) -> bool:
        """False where torch.distributed says that it waits for it at once."""
        return bool(getattr(self.opts, "asyncOp", True))


class _Message(NamedTuple):
    """A message as the rank sends or receives it."""

    sending: bool
    peer: int
    tag: int
    tensor: torch.Tensor

    @property
    def verb(self) -> str:
        """Its name."""
        return "send" if self.sending else "recv"

    @property
    def outs(self) -> Tensors:
        """The tensors that it writes."""
        return () if self.sending else (self.tensor,)

    @property
    def ins(self) -> Tensors:
        """The tensors that it reads."""
        return (self.tensor,) if self.sending else ()


class IssuingGroup(Named, dist.ProcessGroup):
    """One rank's side of a group of the core, as far as it issues operations.

    Args:
        store: one that the members share.
        rank: this one's in the group.
        membership: what the members have in common.
        backend: the name by which the program asked for it.
        timeout: how long an operation may take.
    """

    def __init__(
        self, store: Any, rank: int, membership: Membership, backend: str, timeout: timedelta | None = None
    ) -> None:
        size = len(membership.members)
        super().__init__(rank, size)
        self._store, self._rank, self._size = store, rank, size
        self.prefixes: Sequence[Any] = ()  # of stores, which C++ does not keep alive
        self.membership, self.backend, self.ranks = membership, backend, membership.members
        self.hooks: Hooks | None = None  # the watchers of what this rank issues
        self._core, self._device_core = membership.handle, membership.device_handle
        self._coalescing: list[Any] | None = None
        self.is_batching = False  # what it issues are the messages of a batch_isend_irecv
        self._name, self._desc = membership.name, "undefined"
        self._splits = 0
        self.is_placed = False  # it is known on which devices it is
        self.monitored = 0  # monitored barriers so far
        self.meeting: Any = None  # of ranks before collectives, at the debug level DETAIL; see detailed
        self._extra = timedelta()  # beside the limit
        self._extended: deque[tuple[AhbmWork, timedelta]] = deque()  # the operations with whose ends it ends
        self._refusal = ""  # why nothing can be issued any more
        self._limit, self._is_counted_on = DEFAULT, False
        self._options: Any = None
        self._holds_hosts = backend != "gloo" and watchdog.blocks_hosts()
        if backend == "gloo":
            go.HoldHosts(self._core)  # it has no watchdog
        self._set_default_timeout(timeout or DEFAULT)

    # Collectives

    def _issue(
        self,
        call: Call,
        outs: Tensors,
        ins: Tensors | None,
        result: Any,
        opts: Any = None,
        on_host: bool = False,
        pieces: tuple[Tensors, Tensors] | None = None,
    ) -> AhbmWork:
        """Issues a collective; see _Collective, and go.IssueRegions."""
        asked = _Collective(call, outs, ins, result, opts, on_host, pieces)
        if captures.current() is None:
            return self._issue_at_once(asked)
        with captures.noted(lambda: self._issue_at_once(asked).wait(), outs):
            return self._issue_at_once(asked)

    def _backend_for(self, on_host: bool) -> str:
        """Returns the name of the backend that is for tensors of the host, or of devices: in a group that has one for
        each of them, that of devices is NCCL's."""
        return self.backend if on_host or self._core == self._device_core else "nccl"

    def _issue_at_once(self, asked: _Collective) -> AhbmWork:
        if self.hooks is None:
            return self._start(asked)
        start, call = functools.partial(self._start, asked), asked.call
        tensors = asked.outs, asked.given
        return self.hooks.around(
            self, start, TABLE.told(call.name, call.kind), call.root, tensors, asked.is_asynchronous
        )

    def _start(self, asked: _Collective) -> AhbmWork:
        context, run = runtime.current(), session.current()
        if self._extra:
            self._end_extensions()
        name, outs, ins, given = asked.call.name, asked.outs, asked.ins, asked.given
        used = [*outs, *ins] if ins else list(outs)
        host = asked.on_host or not used or run.is_on_host(used[0])
        if self.backend == "nccl" and used:
            self._check_nccl(asked, used, host)
        if run.before_use is not None:
            run.before_use(used)
        if context.outstanding is not None:
            unwaited_uses.look(name, given, outs, spared=self.membership)
        if context.stream_order is not None:
            ordering.look(context, name, given)
        core, site = self._core if host else self._device_core, context.world.site()
        stream = self._order(context, host, is_barrier=asked.on_host)
        context.last = name, site
        mirrored_calls.collective(context, name, self._size, host, used)
        told, received, sent = used, len(outs), _IN_PLACE if ins is None else len(ins)
        if asked.pieces is not None:
            told, received, sent = [*asked.pieces[0], *asked.pieces[1]], len(asked.pieces[0]), len(asked.pieces[1])
        try:
            handle = go.IssueRegions(core, stream, site, True, asked.call.number, regions(told), received, sent)
        except ValueError as error:
            raise RuntimeError(str(error)) from None
        work = self._issued(handle, asked.result, used, host, core)
        work.writes(context, stream, outs)
        if _allow_inflight_collective_as_graph_input():  # the program waits by torch.ops._c10d_functional.wait_tensor
            work.register(outs)
        if self._may_wait_later(context, asked):
            work.noted(context, name, site, self.membership, given)
        profiles.note(self.backend, name, given, work)
        return work

    def _check_nccl(self, asked: _Collective, used: Sequence[torch.Tensor], host: bool) -> None:
        """Looks at the tensors of a collective, the first of them in the host's memory or not, and refuses what NCCL
        does."""
        self._check_goes_on()
        checks.types(asked.call.name, used[0].dtype)
        if asked.on_host:
            return
        run = session.current()
        if runtime.current().world.ordered and run.refuse_hosts is not None:
            run.refuse_hosts(self, used)
        self._suspect(asked.call.name, used, host)

    def _suspect(self, call: str, used: Sequence[torch.Tensor], host: bool) -> None:
        """Looks at what would be an error on a cluster."""
        suspect = session.current().suspect
        if suspect is not None and (host or not self.is_placed):
            suspect(self, call, used, host)

    def _order(self, context: runtime.Context, host: bool, is_barrier: bool = False) -> int:
        """Returns the stream whose operations one comes after. What gloo does in the host's memory follows no device;
        NCCL's objects and barriers do, for which NCCL uses the device's memory."""
        of_gloo = self.backend == "gloo" or (self.backend != "nccl" and not is_barrier)
        return context.host_stream if host and of_gloo else context.stream

    def _may_wait_later(self, context: runtime.Context, asked: _Collective) -> bool:
        """Reports whether the rank may do something else before it waits for what it issues, or has done so."""
        outstanding = context.outstanding
        if context.threads is not None or self._coalescing is not None or (outstanding and outstanding.issued):
            return True
        return asked.is_asynchronous

    # Messages

    def _post(self, sending: bool, peer: int, tag: int, tensor: torch.Tensor) -> AhbmWork:
        checks.message(self.backend, tensor)
        asked = _Message(sending, peer, tag, tensor)
        if self.backend == "nccl":
            self._refuse_message(asked)
        if captures.current() is None:
            return self._post_at_once(asked)
        with captures.noted(lambda: self._post_at_once(asked).wait(), asked.outs):
            return self._post_at_once(asked)

    def _refuse_message(self, asked: _Message) -> None:
        """Refuses what NCCL does: the rank itself as a peer, but for batches, and tensors of the host."""
        if asked.peer == self._rank and self._coalescing is None and not self.is_batching:
            checks.to_itself("Send" if asked.sending else "Recv")
        refuse_hosts = session.current().refuse_hosts
        if refuse_hosts is not None:
            refuse_hosts(self, [asked.tensor])

    def _post_at_once(self, asked: _Message) -> AhbmWork:
        if self.hooks is None:
            return self._start_message(asked)
        start = functools.partial(self._start_message, asked)
        return self.hooks.around(self, start, asked.verb, asked.peer, (asked.outs, asked.ins), True)

    def _start_message(self, asked: _Message) -> AhbmWork:
        context, run = runtime.current(), session.current()
        sending, peer, tag, tensor = asked
        verb, outs, ins = asked.verb, asked.outs, asked.ins
        if run.before_use is not None:
            run.before_use([tensor])
        if sending:
            unwaited_uses.look(verb, ins, outs)
            ordering.look(context, verb, ins)
        else:
            unwaited_uses.look(verb, ins, outs, spared=self.membership)
        host = run.is_on_host(tensor)
        if self.backend == "nccl":
            self._check_goes_on()
            self._suspect(verb, [tensor], host)
        if self._extra:
            self._end_extensions()
        stream = self._order(context, host)
        core, site, told = self._core if host else self._device_core, context.world.site(), regions([tensor])
        context.last = verb, site
        mirrored_calls.message(context, verb, (peer - self._rank) % self._size, tag, host, tensor)
        try:
            handle = go.PostRegion(core, stream, site, True, sending, peer, tag, told)
        except ValueError as error:
            raise RuntimeError(str(error)) from None
        work = self._issued(handle, [tensor], [tensor], host, (core, sending, peer, tag))
        work.is_message = True
        if self.backend == "gloo":
            work.group = core  # gloo closes all connections where one has waited too long
        work.writes(context, stream, outs)
        work.noted(context, verb, site, self.membership, ins, peer)
        name = "recvAnySource" if peer == ANY_SOURCE and not sending else verb
        profiles.note(self.backend, name, [tensor], work)
        return work

    def _issued(self, handle: int, result: Any, used: list[torch.Tensor], host: bool, lane: object) -> AhbmWork:
        storages = in_flight.note(used, handle, lane)
        if self._is_counted_on:
            limit = self._limit + self._extra
            work = AhbmWork(handle, result, storages, host, limit, self._core if host else self._device_core)
        else:
            work = AhbmWork(handle, result, storages, host)
        work.timeout = self._limit + self._extra
        if self._extra:
            self._note_extended(work)
        if self._backend_for(host) == "nccl":
            work.nccl = self
        if self._holds_hosts and not host:
            work.holds_host = True
        if self._coalescing is not None:
            self._coalescing.append(work)
        works.swept()
        return work

    # Limits of time

    @property
    def timeout(self) -> timedelta:
        """The time that an operation may take."""
        return self._limit

    @property
    def _timeout(self) -> timedelta:
        return self._limit

    def _set_default_timeout(self, timeout: timedelta | float) -> None:
        self._limit = timeout = checks.duration(timeout)
        if self._options is not None:
            self._options._timeout = timeout
        self._is_counted_on = timedelta() < timeout < _LONG
        self._watch(timeout)

    set_timeout = setTimeout = _set_default_timeout  # noqa: N815

    def _add_ephemeral_timeout(self, timeout: timedelta) -> None:
        """Gives operations more time than others, until the first of them has ended."""
        self._extra += timeout
        self._watch(self._limit + self._extra)

    def _note_extended(self, work: AhbmWork) -> None:
        """Notes that more time ends with an operation, as far as it does with no earlier one."""
        mine = self._extra - sum((extra for _, extra in self._extended), timedelta())
        if mine:
            self._extended.append((work, mine))

    def _end_extensions(self) -> None:
        """Takes away the time that was added for operations that have ended."""
        while self._extended and go.IsDone(self._extended[0][0].handle):
            self._add_ephemeral_timeout(-self._extended.popleft()[1])

    def note_late(self, text: str) -> None:
        """Notes that an operation of NCCL's has lasted too long, after which its group is of no use."""
        footprints.use(self.membership.key)
        self.membership.late.add(self._rank)
        self.refuse_more(f"Original reason for failure was: {text}")

    def refuse_more(self, why: str = "") -> None:
        """Refuses, as NCCL does, what this rank issues from now on."""
        self._refusal = self._refusal or f"NCCL communicator was aborted on rank {self._rank}. {why}"

    def _check_goes_on(self) -> None:
        """Raises DistBackendError where nothing can be issued any more."""
        if self._refusal:
            raise errors.DistBackendError(self._refusal)

    def _watch(self, timeout: timedelta) -> None:
        """Makes what this rank issues from now on fail when it lasts longer; not where there is none, or no simulation
        lasts as long."""
        limit = picoseconds(timeout) if timedelta() < timeout < _FOR_EVER else 0
        for core in {self._core, self._device_core}:
            go.SetTimeout(core, runtime.current().rank, limit)
