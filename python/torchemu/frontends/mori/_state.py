"""A rank's knowledge of mori: the PEs, and the symmetric heap."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

from torchemu import dtypes, runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.errors import MismatchError
from torchemu.frontends.mori import _environment
from torchemu.language._launch import ranks_of
from torchemu.language._machine import Machine, machine_of
from torchemu.language._symmetric import _joined
from torchemu.runtime.buffer import chosen
from torchemu.runtime.rank_local import RankLocal

DEFAULT_HEAP = 4 << 30


@dataclass
class State:
    """The state of mori on a rank.

    Attributes:
        ranks: the PEs, as ranks of the World; None before init.
        heap: bytes of the symmetric heap.
        used: bytes that are taken.
        handles: how many handles of a kind the rank has made among some PEs.
        times: how often there was an init.
    """

    ranks: tuple[int, ...] | None = None
    heap: int = DEFAULT_HEAP
    used: int = 0
    handles: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)
    times: int = 0

    def give_back(self, nbytes: int, times: int) -> None:
        """Gives bytes back that were taken after so many inits."""
        if times == self.times:
            self.used -= nbytes


_state: RankLocal[State] = RankLocal(State)


def initialize(group: Any = None) -> None:
    """Makes the ranks of a group PEs: those of the default group, or else all that were spawned.

    Raises:
        TypeError, ValueError: it is no process group, or the rank is no member.
    """
    state = _state.get()
    state.ranks = ranks_of(runtime.current(), group)
    state.heap, state.used = _environment.size("MORI_SHMEM_HEAP_SIZE", DEFAULT_HEAP), 0
    state.times += 1


def finalize() -> None:
    """Ends what initialize began. Doing so twice does no harm."""
    _state.get().ranks = None


def is_initialized() -> bool:
    """Says whether there are PEs."""
    return _state.get().ranks is not None


def state() -> State:
    """Returns what the rank has initialized.

    Raises:
        RuntimeError: nothing.
    """
    own = _state.get()
    if own.ranks is None:
        raise RuntimeError(
            "mori.shmem is not initialized: call mori.shmem.shmem_torch_process_group_init(group_name), or "
            "shmem_init_attr, first"
        )
    return own


def ranks() -> tuple[int, ...]:
    """Returns the PEs as ranks of the World."""
    found = state().ranks
    assert found is not None
    return found


def my_pe() -> int:
    """Returns the rank's number among the PEs."""
    return ranks().index(runtime.current().rank)


def near(pe: int) -> bool:
    """Says whether a PE is on this rank's node."""
    context = runtime.current()
    node = Engines(machine_of(context.world)).node
    return ranks()[pe] // node == context.rank // node


def take(nbytes: int, failure: str, holder: Any = None) -> None:
    """Takes bytes of the heap, which come back with the object that holds them, if one is given.

    Raises:
        RuntimeError: there are not as many, with the text that is given for it.
    """
    own = state()
    if nbytes > own.heap - own.used:
        raise RuntimeError(
            f"{failure}: {nbytes} bytes do not fit into the symmetric heap, of whose {own.heap} bytes {own.used} are "
            "in use; set MORI_SHMEM_HEAP_SIZE"
        )
    own.used += nbytes
    if holder is not None:
        weakref.finalize(holder, own.give_back, nbytes, own.times)


def give_back(nbytes: int) -> None:
    """Gives bytes of the heap back."""
    own = _state.get()
    own.give_back(nbytes, own.times)


_timing_only: RankLocal[bool] = RankLocal(bool)


def timing_only() -> bool:
    """Says whether handles that the rank makes move no data."""
    return _timing_only.get() or not chosen().has_elements


def omit_data(omitted: bool = True) -> None:
    """Makes handles that the rank makes from now on move no data: their calls take their time."""
    _timing_only.set(omitted)


class Engines:
    """The engines of the topology.

    Attributes:
        sdma, pairs: how many SDMA queues, and queue pairs of a network card, there are to a peer at most.
        barrier: picoseconds that a barrier on a stream takes beside its signals.
        host_barrier: picoseconds that a barrier of hosts takes.
        node: devices of a node.
    """

    def __init__(self, machine: Machine) -> None:
        self.sdma, self.pairs, self.barrier, self.host_barrier, self.node = go.PrimEngines(machine.handle)


class Team:
    """The PEs that use a handle together. All of them make it, in the same order.

    Attributes:
        pes: their numbers among all PEs.
        ranks: the same as ranks of the World.
        index: the number of this rank among them.
        machine: what their programs run on.
        calls: what members have called, by the number of the call and the member.
        steps: how often this rank has asked for something in step with the others.
        asked: what members have asked for, by that number and the member.
    """

    steps = 0

    def __init__(self, kind: str, pes: tuple[int, ...]) -> None:
        context, own = runtime.current(), state()
        self.kind, self.pes, self.ranks = kind, pes, tuple(ranks()[pe] for pe in pes)
        self.index = self.ranks.index(context.rank)
        self.machine = machine_of(context.world)
        self.engines = Engines(self.machine)
        number = own.handles.get((kind, pes), 0)
        own.handles[kind, pes] = number + 1
        self._key = (kind, self.ranks, number)
        shared = _shared.setdefault(context.world, {}).setdefault(self._key, ({}, {}))
        self.calls: dict[int, dict[int, Any]] = shared[0]
        self.asked: dict[int, dict[int, str]] = shared[1]

    def window(self, what: str, nbytes: int, data: bool = True) -> Window:
        """Makes symmetric memory: for data, if it is without bytes in calls of which only the time is wanted.

        Raises:
            MismatchError: another member asks for something else.
        """
        name = f"{self.kind} {what}"
        rank = runtime.current().rank
        allocate = go.PrimAllocateHollow if data and timing_only() else go.PrimAllocate
        number = _joined(
            self.machine.heap,
            self.machine.handle,
            self.ranks,
            rank,
            (name, (max(nbytes, 8),)),
            max(nbytes, 8),
            allocate,
        )
        return Window(number, self.ranks, nbytes)

    def join(self, member: int, call: Any) -> None:
        """Notes a member's part in a call.

        Raises:
            MismatchError: another member's has another size.
        """
        call.place = runtime.call_site()
        parts = self.calls.setdefault(call.number, {})
        for other, part in parts.items():
            if (part.nbytes, part.splits) != (call.nbytes, call.splits):
                raise MismatchError(
                    f"{self.kind}, call {call.number} of the handle: PE {self.pes[member]} gives {_size(call)} at "
                    f"{call.place}, and PE {self.pes[other]} {_size(part)} at {part.place}. All must give as much."
                )
        parts[member] = call

    def forget(self, number: int) -> None:
        """Forgets this rank's part in a call."""
        parts = self.calls.get(number, {})
        parts.pop(self.index, None)
        if not parts:
            self.calls.pop(number, None)

    def barrier(self, name: str, members: tuple[int, ...]) -> int:
        """Returns a barrier of some members."""
        chosen = tuple(self.ranks[i] for i in members)
        key = (self._key, chosen, name)
        return self.machine._once(key, lambda: go.PrimBarrier(self.machine.handle, f"of {self.kind}", chosen, "phase"))


def _size(call: Any) -> str:
    """Says how much a member gives."""
    parts = f" in parts {[n for _, n in call.splits]}" if call.splits else ""
    return f"{call.nbytes} bytes{parts}"


_Shared = tuple[dict[int, dict[int, Any]], dict[int, dict[int, str]]]
_shared: weakref.WeakKeyDictionary[runtime.World, dict[Any, _Shared]] = weakref.WeakKeyDictionary()
"""State that the members of a team have in common, by World and team."""


class Window:
    """Symmetric memory of a team.

    Attributes:
        number: the core's.
        nbytes: on each member.
    """

    def __init__(self, number: int, ranks: tuple[int, ...], nbytes: int) -> None:
        self.number, self.nbytes = number, nbytes
        self._starts = [go.PrimAddress(number, rank, 0) for rank in ranks]

    def tensor(self, dtype: Any = None) -> Any:
        """Makes a tensor of this rank's memory, of elements of a type; of bytes by default."""
        context, tensors = runtime.current(), chosen()
        kind = dtypes.uint8 if dtype is None else dtypes.parse(str(dtype).removeprefix("torch."))
        shape = (self.nbytes // kind.itemsize,)
        number = go.PrimWindowTensor(self.number, context.rank, kind.name, shape)
        made = tensors.of_core(context.world, Handle(number), kind, shape)
        machine_of(context.world).heap.windows[tensors.buffer(made).memory] = self.number
        return made

    def at(self, member: int, offset: int = 0) -> int:
        """Returns the address of a byte in a member's memory."""
        return self._starts[member] + offset
