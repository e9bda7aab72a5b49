"""Process groups: one rank's side of a group of the core."""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ErrorType, _allow_inflight_collective_as_graph_input, _register_work

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.bridge.calls import Call
from torchemu.c10d import flight_files
from torchemu.c10d.hooks import Hooks
from torchemu.c10d.ops import OPS, TABLE
from torchemu.frontends.torch import (
    checks,
    host_tensors,
    mirrored_calls,
    monitored,
    profiles,
    session,
    sparse,
    unwaited_uses,
    works,
)
from torchemu.frontends.torch.c10d_operators import as_operators
from torchemu.frontends.torch.device import deferral, in_flight, ordering
from torchemu.frontends.torch.membership import Membership, leave, met, shared
from torchemu.frontends.torch.memory import regions
from torchemu.frontends.torch.naming import Named
from torchemu.frontends.torch.reductions import locally, number, reduced
from torchemu.frontends.torch.works import AhbmWork, Several
from torchemu.runtime import capture as captures
from torchemu.runtime import launches, watchdog
from torchemu.runtime.waiting import picoseconds

_DEFAULT = timedelta(minutes=30)

_LONG = timedelta(minutes=5)
"""A timeout from which on nobody counts on it: where nothing can happen any more, and no fault is the reason, the
deadlock is reported at once."""

_FOR_EVER = timedelta(days=100)
"""A timeout that is none: picoseconds count 106 days."""

_IN_PLACE = -1
_ANY_SOURCE = -1

Tensors = Sequence[torch.Tensor]


@as_operators
class AhbmGroup(Named, dist.ProcessGroup):
    """One rank's side of a group.

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
        self._extra = timedelta()  # for the next operation, beside the limit
        self._limit, self._is_counted_on = _DEFAULT, False
        self._options: Any = None
        self._holds_hosts = backend != "gloo" and watchdog.blocks_hosts()
        if backend == "gloo":
            go.HoldHosts(self._core)  # it has no watchdog
        self._set_default_timeout(timeout or _DEFAULT)

    # What operations have in common

    def _issue(
        self, call: Call, outs: Tensors, ins: Tensors | None, result: Any, opts: Any = None, on_host: bool = False
    ) -> AhbmWork:
        """Issues a collective; see go.IssueRegions. ins is None for what is in place."""
        if captures.current() is None:
            return self._issue_at_once(call, outs, ins, result, opts, on_host)
        again = functools.partial(self._issue_at_once, call, outs, ins, result, opts, on_host)
        with captures.noted(lambda: again().wait(), outs):
            return again()

    def _backend_for(self, on_host: bool) -> str:
        """Returns the name of the backend that is for tensors of the host, or of devices: in a group that has one for
        each of them, that of devices is NCCL's."""
        return self.backend if on_host or self._core == self._device_core else "nccl"

    def _issue_at_once(
        self, call: Call, outs: Tensors, ins: Tensors | None, result: Any, opts: Any, on_host: bool
    ) -> AhbmWork:
        if self.hooks is None:
            return self._start(call, outs, ins, result, opts, on_host)
        start = functools.partial(self._start, call, outs, ins, result, opts, on_host)
        told = TABLE.told(call.name, call.kind)
        return self.hooks.around(self, start, told, call.root, (outs, ins or []), bool(getattr(opts, "asyncOp", True)))

    def _start(self, call: Call, outs: Tensors, ins: Tensors | None, result: Any, opts: Any, on_host: bool) -> AhbmWork:
        context, run = runtime.current(), session.current()
        used = [*outs, *ins] if ins else list(outs)
        host = on_host or not used or run.is_on_host(used[0])
        if self.backend == "nccl" and used:
            self._check_nccl(call, used, host, on_host)
        if run.before_use is not None:
            run.before_use(used)
        given = outs if ins is None else ins
        if context.outstanding is not None:
            unwaited_uses.look(call.name, given, outs, spared=self.membership)
        if context.stream_order is not None:
            ordering.look(context, call.name, given)
        count = _IN_PLACE if ins is None else len(ins)
        core, site = self._core if host else self._device_core, context.world.site()
        stream = self._order(context, host, is_barrier=on_host)
        context.last = call.name, site
        mirrored_calls.collective(context, call.name, self._size, host, used)
        try:
            handle = go.IssueRegions(core, stream, site, True, call.number, regions(used), len(outs), count)
        except ValueError as error:
            raise RuntimeError(str(error)) from None
        work = self._issued(handle, result, used, host, core)
        work.writes(context, stream, outs)
        if _allow_inflight_collective_as_graph_input():  # the program waits by torch.ops._c10d_functional.wait_tensor
            for tensor in outs:
                _register_work(tensor, work)
        if self._may_wait_later(context, opts):
            work.noted(context, call.name, site, self.membership, given)
        profiles.note(self.backend, call.name, given, work)
        return work

    def _check_nccl(self, call: Call, used: Sequence[torch.Tensor], host: bool, on_host: bool) -> None:
        """Looks at the tensors of a collective, and refuses what NCCL does.

        Args:
            host: the first one is in the host's memory.
            on_host: as it has to be, for NCCL itself would allocate it.
        """
        checks.types(call.name, used[0].dtype)
        if on_host:
            return
        run = session.current()
        if runtime.current().world.ordered and run.refuse_hosts is not None:
            run.refuse_hosts(self, used)
        self._suspect(call.name, used, host)

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

    def _may_wait_later(self, context: runtime.Context, opts: Any) -> bool:
        """Reports whether the rank may do something else before it waits for what it issues with these options, or has
        done so: always but where torch.distributed says that it waits at once."""
        outstanding = context.outstanding
        if context.threads is not None or self._coalescing is not None or (outstanding and outstanding.issued):
            return True
        return bool(getattr(opts, "asyncOp", True))

    def _post(self, sending: bool, peer: int, tag: int, tensor: torch.Tensor) -> AhbmWork:
        checks.message(self.backend, tensor)
        if self.backend == "nccl":
            self._refuse_message(sending, peer, tensor)
        if captures.current() is None:
            return self._post_at_once(sending, peer, tag, tensor)
        again = functools.partial(self._post_at_once, sending, peer, tag, tensor)
        with captures.noted(lambda: again().wait(), () if sending else (tensor,)):
            return again()

    def _refuse_message(self, sending: bool, peer: int, tensor: torch.Tensor) -> None:
        """Refuses what NCCL does: the rank itself as a peer, but for batches, and tensors of the host."""
        if peer == self._rank and self._coalescing is None and not self.is_batching:
            checks.to_itself("Send" if sending else "Recv")
        refuse_hosts = session.current().refuse_hosts
        if refuse_hosts is not None:
            refuse_hosts(self, [tensor])

    def _post_at_once(self, sending: bool, peer: int, tag: int, tensor: torch.Tensor) -> AhbmWork:
        if self.hooks is None:
            return self._start_message(sending, peer, tag, tensor)
        start = functools.partial(self._start_message, sending, peer, tag, tensor)
        name, tensors = ("send", ((), (tensor,))) if sending else ("recv", ((tensor,), ()))
        return self.hooks.around(self, start, name, peer, tensors, True)

    def _start_message(self, sending: bool, peer: int, tag: int, tensor: torch.Tensor) -> AhbmWork:
        context, run = runtime.current(), session.current()
        if run.before_use is not None:
            run.before_use([tensor])
        if sending:
            unwaited_uses.look("send", [tensor], [])
            ordering.look(context, "send", [tensor])
        else:
            unwaited_uses.look("recv", [], [tensor], spared=self.membership)
        host = run.is_on_host(tensor)
        if self.backend == "nccl":
            self._suspect("send" if sending else "recv", [tensor], host)
        stream = self._order(context, host)
        core, site, told = self._core if host else self._device_core, context.world.site(), regions([tensor])
        context.last = verb, site = "send" if sending else "recv", site
        mirrored_calls.message(context, verb, (peer - self._rank) % self._size, tag, host, tensor)
        try:
            handle = go.PostRegion(core, stream, site, True, sending, peer, tag, told)
        except ValueError as error:
            raise RuntimeError(str(error)) from None
        work = self._issued(handle, [tensor], [tensor], host, (core, sending, peer, tag))
        if self.backend == "gloo":
            work.group = core  # gloo closes all connections where one has waited too long
        work.writes(context, stream, [] if sending else [tensor])
        work.noted(context, verb, site, self.membership, [tensor] if sending else [], peer)
        name = "recvAnySource" if peer == _ANY_SOURCE and not sending else verb
        profiles.note(self.backend, name, [tensor], work)
        return work

    def _issued(self, handle: int, result: Any, used: list[torch.Tensor], host: bool, lane: object) -> AhbmWork:
        storages = in_flight.note(used, handle, lane)
        if self._is_counted_on:
            limit = self._limit + self._extra
            work = AhbmWork(handle, result, storages, host, limit, self._core if host else self._device_core)
        else:
            work = AhbmWork(handle, result, storages, host)
        if self._extra:
            self._add_ephemeral_timeout(-self._extra)
        if self._holds_hosts and not host:
            work.holds_host = True
        if self._coalescing is not None:
            self._coalescing.append(work)
        works.swept()
        return work

    def _blocks(self, whole: torch.Tensor, sizes: Sequence[int]) -> list[torch.Tensor]:
        """Splits a tensor for all ranks into the part of each."""
        return list(whole.split(list(sizes)) if sizes else whole.chunk(self._size))

    def _op(self, options: Any, tensor: torch.Tensor) -> Any:
        """The reduce op of options, or an op that takes their place, for such tensors."""
        op = dist.ReduceOp.SUM if options is None else getattr(options, "reduceOp", options)
        checks.reduction(self.backend, op, tensor.dtype)
        return op

    # Collectives

    def allreduce(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None, op: Any = None) -> Any:
        """Replaces the tensors on every rank by their reduction."""
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        checks.not_empty("allreduce", tensors)
        op = self._op(opts if op is None else op, tensors[0])
        if tensors[0].layout is not torch.strided:
            return sparse.all_reduce(self, tensors, op)
        if len(tensors) > 1:
            return self._allreduce_across(tensors, op, opts)
        checks.without_gaps(self.backend, tensors)
        return self._issue(_reducing("all_reduce", op), tensors, None, tensors, opts)

    def _allreduce_across(self, tensors: Sequence[torch.Tensor], op: Any, opts: Any) -> Any:
        """Replaces several tensors of each rank by the reduction of all, as gloo does; the rank waits for it here.

        Raises:
            RuntimeError: the backend is NCCL's, or the tensors are not alike.
        """
        checks.alone(self.backend, tensors)
        checks.alike("allreduce", tensors[1:], tensors[0])
        first, *others = tensors
        for other in others:
            locally(op)(first, other, out=first)
        work = self._issue(_reducing("all_reduce", op), [first], None, tensors, opts)
        work.wait()
        for other in others:
            other.copy_(first)
        return work

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        """allreduce of several tensors as one operation."""
        checks.not_empty("allreduce", tensors)
        checks.together(self.backend, tensors)
        call = _reducing("all_reduce_coalesced", self._op(opts, tensors[0]))
        return self._issue(call, tensors, None, tensors, opts)

    def broadcast(self, tensors: Any, opts: Any = None, timeout: timedelta | None = None, root: Any = None) -> Any:
        """Replaces the tensor on every rank by the root's."""
        root = _root("broadcast", tensors, opts if root is None else root)
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        checks.root("broadcast", root, self._size, self.backend)
        if len(tensors) > 1:
            return self._broadcast_across(tensors, root, opts)
        checks.without_gaps(self.backend, tensors)
        ins: Tensors | None = None if self._rank == root else []
        return self._issue(_call("broadcast", root), tensors, ins, tensors, opts)

    def _broadcast_across(self, tensors: Sequence[torch.Tensor], root: int, opts: Any) -> Any:
        """Replaces several tensors of each rank by one of the root's, as gloo does; the rank waits for it here.

        Raises:
            RuntimeError: the backend is NCCL's, or the tensors are not alike.
        """
        checks.alone(self.backend, tensors)
        checks.alike("broadcast", tensors[1:], tensors[0])
        number = getattr(opts, "rootTensor", 0)
        if not 0 <= number < len(tensors):
            checks.refuse("broadcast", f"invalid root tensor: {number}")
        work = self.broadcast(tensors[number], root)
        work.wait()
        for other in tensors:
            if other is not tensors[number]:
                other.copy_(tensors[number])
        return work

    def reduce(
        self, tensors: Any, opts: Any = None, op: Any = None, timeout: timedelta | None = None, root: Any = None
    ) -> Any:
        """Replaces the root's tensor by the reduction."""
        opts = opts if root is None else root
        root = _root("reduce", tensors, opts)
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        checks.root("reduce", root, self._size, self.backend)
        checks.without_gaps(self.backend, tensors)
        call = _reducing("reduce", self._op(op if isinstance(opts, int) else opts, tensors[0]), root)
        if self._rank == root:
            return self._issue(call, tensors, None, tensors, opts)
        return self._issue(call, [], tensors, tensors, opts)

    def allgather(self, outs: Any, ins: Any, opts: Any = None, timeout: timedelta | None = None) -> Any:
        """Gives every rank the tensors of all in a list."""
        if isinstance(ins, torch.Tensor):
            outs, ins = [outs], [ins]
        checks.not_empty("allgather", ins)
        if len(ins) != len(outs):
            checks.refuse("allgather", "requires input/output tensor lists to have the same length")
        works = [self._all_gather(i, o, t, opts) for i, (o, t) in enumerate(zip(outs, ins, strict=True))]
        return works[0] if len(works) == 1 else Several(works, outs)

    def _all_gather(self, index: int, outs: list[torch.Tensor], given: torch.Tensor, opts: Any) -> AhbmWork:
        checks.as_many("allgather", "output", index, outs, self._size, self.backend)
        checks.without_gaps(self.backend, [given])
        # NCCL's members may bring tensors of different sizes.
        is_gloos = self._backend_for(session.current().is_on_host(given)) == "gloo"
        alike = outs if is_gloos else outs[self._rank : self._rank + 1]
        checks.alike("allgather", alike, given, backend=self.backend)
        work = self._issue(_call("all_gather"), outs, [given], outs, opts)
        work.is_stacked = self.backend == "nccl" and all(out.shape == given.shape for out in outs)
        return work

    def allgather_coalesced(self, outs: list[list[torch.Tensor]], ins: list[torch.Tensor], opts: Any = None) -> Any:
        """allgather of several tensors: outs has a list for each rank."""
        checks.of_gloo(self.backend, "allgather_coalesced")
        checks.not_empty("allgather_coalesced", ins)
        if len(outs) != self._size:
            checks.refuse("allgather_coalesced", "output lists should be equal to world size")
        blocks = [tensor for row in outs for tensor in row]
        return self._issue(_call("all_gather_coalesced"), blocks, ins, outs, opts)

    def _allgather_base(self, out: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Any:
        checks.gathered(self.backend, out, given, self._size)
        checks.without_gaps(self.backend, [out, given])
        return self._issue(_call("all_gather_into_tensor"), [out], [given], [out], opts)

    all_gather_single = _allgather_base

    def allgather_into_tensor_coalesced(self, outs: Tensors, ins: Tensors, opts: Any = None) -> Any:
        """_allgather_base of several tensors."""
        return Several([self._allgather_base(o, i) for o, i in zip(outs, ins, strict=True)], list(outs))

    def reduce_scatter(
        self, outs: Any, ins: Any, opts: Any = None, timeout: timedelta | None = None, op: Any = None
    ) -> Any:
        """Gives each rank the reduction of the tensors that are for it."""
        if isinstance(outs, torch.Tensor):
            outs, ins = [outs], [ins]
        if any(len(given) != self._size for given in ins):
            raise RuntimeError("invalid input tensor list size, must be world size")
        if self._backend_for(session.current().is_on_host(outs[0])) == "gloo":
            for out, given in zip(outs, ins, strict=True):
                checks.alike("reduce_scatter", given[self._rank : self._rank + 1], out)
        checks.without_gaps(self.backend, outs)
        call = _reducing("reduce_scatter", self._op(opts if op is None else op, outs[0]))
        works = [self._issue(call, [out], given, [out], opts) for out, given in zip(outs, ins, strict=True)]
        return works[0] if len(works) == 1 else Several(works, outs)

    def _reduce_scatter_base(self, out: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Any:
        checks.scattered(self.backend, out, given, self._size)
        call = _reducing("reduce_scatter_tensor", self._op(opts, out))
        return self._issue(call, [out], [given], [out], opts)

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter_tensor_coalesced(self, outs: Tensors, ins: Tensors, opts: Any = None) -> Any:
        """_reduce_scatter_base of several tensors."""
        return Several([self._reduce_scatter_base(o, i, opts) for o, i in zip(outs, ins, strict=True)], list(outs))

    def gather(self, outs: Any, ins: Any, opts: Any = None, timeout: timedelta | None = None, root: Any = None) -> Any:
        """Gives the root the tensors of all in a list."""
        root = _root("gather", ins, opts if root is None else root)
        if isinstance(ins, torch.Tensor):
            outs, ins = [outs] if outs else [], [ins]
        checks.root("gather", root, self._size, self.backend)
        checks.alone(self.backend, ins)
        checks.single("gather", ins, "input")
        checks.without_gaps(self.backend, ins)
        if self._rank == root:
            checks.of_root(self.backend, "gather", "output", outs, self._size)
            checks.alike("gather", outs[0], ins[0], backend=self.backend)
        if self.backend == "gloo" and ins[0].is_complex():
            raise RuntimeError("Invalid scalar type: gloo has no gather of complex numbers")
        gathered = outs[0] if self._rank == root else []
        return self._issue(_call("gather", root), gathered, ins, gathered, opts)

    def scatter(self, outs: Any, ins: Any, opts: Any = None, timeout: timedelta | None = None, root: Any = None) -> Any:
        """Gives each rank one of the root's tensors."""
        root = _root("scatter", outs, opts if root is None else root)
        if isinstance(outs, torch.Tensor):
            outs, ins = [outs], [ins] if ins else []
        checks.root("scatter", root, self._size, self.backend)
        checks.alone(self.backend, outs)
        checks.single("scatter", outs, "output")
        if self._rank == root:
            checks.of_root(self.backend, "scatter", "input", ins, self._size)
            checks.alike("scatter", ins[0], outs[0], backend=self.backend)
        return self._issue(_call("scatter", root), outs, ins[0] if self._rank == root else [], outs, opts)

    def alltoall(self, outs: Tensors, ins: Tensors, opts: Any = None, timeout: timedelta | None = None) -> Any:
        """Gives rank r the tensor that each has at index r."""
        checks.without_gaps(self.backend, [*outs, *ins])
        return self._issue(_call("all_to_all"), outs, ins, outs, opts)

    def alltoall_base(
        self,
        out: torch.Tensor,
        given: torch.Tensor,
        out_splits: Sequence[int],
        in_splits: Sequence[int],
        opts: Any = None,
        timeout: timedelta | None = None,
    ) -> Any:
        """Acts as alltoall, of the rows of one tensor."""
        checks.splits(out_splits, out, self._size)
        checks.splits(in_splits, given, self._size)
        checks.contiguous(given)
        checks.without_gaps(self.backend, [out])
        call = _call("all_to_all_single")
        if not out_splits and not in_splits:
            return self._issue(call, [out], [given], [out], opts)
        return self._issue(call, self._blocks(out, out_splits), self._blocks(given, in_splits), [out], opts)

    def barrier(self, opts: Any = None, timeout: timedelta | None = None) -> Any:
        """Ends for each rank after it has begun for all."""
        token = [torch.zeros(1, dtype=torch.uint8, device="cpu")]
        return self._issue(Call.of("barrier", "all_reduce", "max"), token, None, [], opts, on_host=True)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """A barrier of which rank 0 says who did not come."""
        self.monitored += 1
        monitored.barrier(self, self._timeout if timeout is None else timeout, wait_all_ranks)

    # Messages

    def send(self, tensors: Tensors, dst: int, tag: int = 0) -> Any:
        """Sends a tensor to a group rank."""
        return self._post(True, dst, tag, tensors[0])

    def recv(self, tensors: Tensors, src: int, tag: int = 0) -> Any:
        """Receives a tensor from a group rank."""
        return self._post(False, src, tag, tensors[0])

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> Any:
        """Receives a tensor from any rank."""
        return self._post(False, _ANY_SOURCE, tag, tensors[0])

    # What else c10d asks

    def _set_group_desc(self, desc: str) -> None:
        super()._set_group_desc(desc)
        flight_files.watch_as_asked_for(self)  # c10d sets the name before, and nothing after

    setGroupDesc = _set_group_desc  # noqa: N815

    def _enable_collectives_timing(self) -> None:
        flight_files.enable_timing(self)

    def collectives(self, on_host: bool) -> int:
        """Counts the collectives that this rank has issued, of the host's tensors or of devices'."""
        return int(go.NextSeq(self._core if on_host else self._device_core, runtime.current().rank))

    @property
    def timeout(self) -> timedelta:
        """The time that an operation may take."""
        return self._limit

    def _start_coalescing(self, device: Any = None) -> None:
        if self._backend_for(device is None or torch.device(device).type == "cpu") == "gloo":
            raise RuntimeError("Backend gloo does not implement startCoalescing")
        self._coalescing = []
        launches.launch_together(True)

    def _end_coalescing(self, device: Any = None) -> Any:
        issued, self._coalescing = self._coalescing or [], None
        launches.launch_together(False)
        return Several(issued, list(deferral.tensors([work.outputs for work in issued])))

    def size(self) -> int:
        """The number of ranks."""
        return self._size

    def rank(self) -> int:
        """This rank's number in the group."""
        return self._rank

    def getSize(self) -> int:  # noqa: N802 (what C++ calls it)
        """Returns the same as size."""
        return self._size

    def getRank(self) -> int:  # noqa: N802
        """Returns the same as rank."""
        return self._rank

    def get_group_store(self) -> Any:
        """A store that the members share."""
        return self._store

    @property
    def supports_splitting(self) -> bool:
        """Answers as PyTorch's backend of this name does."""
        return self.backend != "gloo"

    @property
    def supports_coalescing(self) -> bool:
        """Answers as PyTorch's backend of this name does."""
        return self.backend != "gloo"

    supports_time_estimate = supports_shrinking = False

    def supports_tensor_alloc(self, device: Any) -> bool:
        """Answers as NCCL does without memory of its own: tensors are PyTorch's."""
        return False

    def allocate_tensor(self, size: int, *, dtype: Any = None, device: Any = None) -> NoReturn:
        """Refuses to allocate what supports_tensor_alloc has said that it cannot."""
        raise RuntimeError(f"Backend {self.backend} does not support allocateTensor: make tensors by torch.empty")

    def _get_backend(self, device: Any) -> AhbmGroup:
        if torch.device(device).type == "cpu" and host_tensors.are_refused(self):
            raise RuntimeError(host_tensors.NO_BACKEND)
        return self

    @property
    def has_only_devices(self) -> bool:
        """Says whether no backend of the group is for tensors of the host: NCCL is alone, and devices are there."""
        return self.backend == "nccl" and self._core == self._device_core and torch.cuda.is_available()

    @property
    def _device_types(self) -> list[torch.device]:
        devices = [torch.device("cuda")] if torch.cuda.is_available() else []
        return devices if self.has_only_devices else [torch.device("cpu"), *devices]

    @property
    def options(self) -> Any:
        """The options of the group, whose timeout is the group's."""
        return self._options

    def _take_options(self, options: Any) -> None:
        options._timeout, self._options = self._limit, options

    def split_group(
        self,
        new_ranks: Sequence[int],
        timeout: timedelta | None = None,
        opts: Any = None,
        group_name: str | None = None,
        group_desc: str | None = None,
    ) -> AhbmGroup | None:
        """A group of some of the ranks; None on the others."""
        if self._rank not in new_ranks:
            return None
        self._splits += 1
        name = group_name or f"{self._name}:split:{self._splits}"
        mine = sorted(new_ranks)
        world_ranks = [self.membership.members[r] for r in mine]
        membership = shared(name, world_ranks, are_world_ranks=True, is_parted=self._core != self._device_core)
        made = self._like(dist.PrefixStore(f"{name}/", self._store), mine.index(self._rank), membership)
        if timeout is not None or opts is not None:
            made._options = copy.copy(opts or self._options)
            made._set_default_timeout(timeout or self._timeout)
        made._set_group_desc(group_desc or f"{self._desc}:split:{self._splits}")
        return made

    def merge_remote_group(
        self,
        store: Any,
        size: int,
        timeout: timedelta = _DEFAULT,
        group_name: str | None = None,
        group_desc: str | None = None,
    ) -> AhbmGroup:
        """A group of this rank and of others that share a store; they are numbered as they come."""
        name, rank = group_name or f"{self._name}:merge", store.add("mergeGroupRank", 1) - 1
        members = met(store, rank, size)
        membership = shared(name, members, are_world_ranks=True, is_parted=self._core != self._device_core)
        made = self._like(store, rank, membership)
        made._set_default_timeout(timeout)
        made._set_group_desc(group_desc or f"{self._desc}:merge")
        return made

    def _like(self, store: Any, rank: int, membership: Membership) -> AhbmGroup:
        """A group of the same kind with other members, with options of its own."""
        made = type(self).__new__(type(self))
        AhbmGroup.__init__(made, store, rank, membership, self.backend, self._timeout)
        made._set_group_name(membership.name)
        made._options = copy.copy(self._options)
        return made

    def comm_split_count(self) -> int:
        """Counts the groups that have been split off."""
        return self._splits

    def perform_nocolor_split(self, device: Any) -> None:
        """Takes part in a split that makes no group for this rank: nothing is to be done."""

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
        """Gives the next operation more time than others."""
        self._extra += timeout
        self._watch(self._limit + self._extra)

    def _watch(self, timeout: timedelta) -> None:
        """Makes what this rank issues from now on fail when it lasts longer; not where there is none, or no simulation
        lasts as long."""
        limit = picoseconds(timeout) if timedelta() < timeout < _FOR_EVER else 0
        for core in {self._core, self._device_core}:
            go.SetTimeout(core, runtime.current().rank, limit)

    def get_error(self) -> Any:
        """Says that nothing has failed: what fails here is an error of the rank at once."""
        return ErrorType.SUCCESS

    def _verify_work_timeout(self, work: Any, timeout: timedelta) -> bool:
        return bool(timeout == self._timeout)

    def _set_sequence_number_for_group(self) -> None:
        """The core counts by itself."""

    def _get_sequence_number_for_group(self) -> int:
        return int(go.NextSeq(self._core, runtime.current().rank))

    def eager_connect_single_device(self, device: Any) -> None:
        """Nothing is to be connected."""

    def _has_hooks(self) -> bool:
        return False

    def _wait_for_pending_works(self) -> None:
        """Nothing calls hooks on other threads."""

    def _group_start(self) -> None:
        """Begins aborting several groups at once."""

    def _group_end(self) -> None:
        """Ends it."""

    def shutdown(self) -> None:
        """Leaves the group."""
        leave(self.membership)

    def abort(self) -> None:
        """Ends, with an error, what this rank has a part in and that cannot go on."""
        for core in {self._core, self._device_core}:
            go.AbortGroup(core, runtime.current().rank)

    def __repr__(self) -> str:
        return f"<torch.distributed.ProcessGroup {self._name} ({self.backend}), rank {self._rank} of {self._size}>"


def _root(operation: str, tensors: Any, options: Any) -> int:
    """The root of options; one that takes their place, which is for a tensor and not for a list; and that of PyTorch's
    options where there are none."""
    if isinstance(options, int) and not isinstance(tensors, torch.Tensor):
        raise TypeError(f"{operation}(): incompatible function arguments. A list of tensors needs options, and no root")
    return options if isinstance(options, int) else 0 if options is None else int(options.rootRank)


def _call(name: str, root: int = 0) -> Call:
    """The call of a function that does not reduce."""
    known = _calls.get((name, None, root))
    if known is None:
        known = _calls[name, None, root] = Call.of(name, OPS[name].kind.name, "", root)
    return known


def _reducing(name: str, op: Any, root: int = 0) -> Call:
    """The call of a function that reduces."""
    key = name, number(op), root
    known = _calls.get(key)
    if known is None:
        reduction, factor = reduced(op)
        known = Call.of(name, OPS[name].kind.name, reduction, root, factor)
        if factor is None:
            _calls[key] = known
    return known


_calls: dict[tuple[str, int | None, int], Call] = {}
"""The frequent calls, by their name, PyTorch's number of the reduction, and the root."""
