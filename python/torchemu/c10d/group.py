"""A process group, as one of its ranks knows it. Front ends derive their classes of groups from it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.bridge.calls import Call
from torchemu.c10d import backends, flight_files
from torchemu.c10d.backends import Backend
from torchemu.c10d.completion import Completion
from torchemu.c10d.hooks import Hooks
from torchemu.c10d.membership import Membership
from torchemu.c10d.work import FOR_EVER
from torchemu.runtime.buffer import ACCELERATORS, HOST, Device, TensorClass, chosen
from torchemu.runtime.waiting import picoseconds

if TYPE_CHECKING:
    from torchemu.c10d.coalescing import Collected
    from torchemu.c10d.custom_groups import Plan
    from torchemu.c10d.stores import Store


class Delegate(Protocol):
    """The operations of a group that is not on the fabric are done by one of these: a front end has it."""

    def collective(self, call: Call, outs: Sequence[Any], ins: Sequence[Any], async_op: bool) -> Any:
        """Does a collective, and returns its work; without async_op waits for it, and returns None."""

    def message(self, sending: bool, peer: int, tag: int, tensor: Any) -> Any:
        """Does one side of a message with a group rank, or from anybody for -1, and returns its work."""

    def name(self) -> str:
        """Returns the name of the group's backend."""

    def abort(self) -> None:
        """Ends what is under way."""


class Group:
    """A process group, as one of its ranks knows it.

    Attributes:
        ranks: the members' numbers in the default group, by group rank.
        group_name: the same on all ranks; the default group is "0".
        group_desc: what the program says it is for.
        backend: the backend's name, as the program gave it.
        takes_devices, takes_hosts: whether that is for tensors on devices, and in hosts' memory.
        holds_hosts: collectives block the host, as with gloo.
        coalescing: what a coalescing manager has collected; None outside of one.
        token: what a barrier reduces; None before the first.
        store: what was given to init_process_group, or found; None where nobody asked for it.
        monitored: how many monitored barriers this rank has called.
        hooks: the watchers of what this rank issues; None for none.
        served: the rank whose tensor was last found to be on a device that the group serves, and that device.
        alive: not destroyed.
        sharded: the members are the shards of a single worker's tensors.
    """

    store: Store | None
    _place: tuple[int, int] | None  # rank and size of a group that a program has made; None on the fabric

    @classmethod
    def over(cls, shared: Membership, ranks: Sequence[int], name: str, description: str, backend: str) -> Group:
        """The group of some ranks of the default group, whose collectives the fabric does."""
        group = cls.__new__(cls)
        group._begin(None)
        group.join(shared, ranks, name, description, backend)
        if not group.sharded:
            flight_files.watch_as_asked_for(group)
        return group

    def _begin(self, hooks: Hooks | None) -> None:
        self.hooks = hooks
        self.holds_hosts = False
        self._place = None
        self._bound_device: Any = None
        self.holds_hosts = False
        self.coalescing: Collected | None = None
        self.token: Any = None
        self.store = None
        self.monitored = 0
        self.alive = True

    def join(self, shared: Membership, ranks: Sequence[int], name: str, description: str, backend: str) -> None:
        """Makes it the group of some ranks of the default group."""
        self.world, self.handle, self.sharded = shared.world, shared.handle, shared.sharded
        self.shared = shared
        self.index = shared.index
        self.ranks = tuple(ranks)
        self._name, self._description, self.backend = name, description, backend
        served = backends.BackendConfig(backend).device_backend_map
        self.holds_hosts = backends.Backend.GLOO in (served.get(kind) for kind in ACCELERATORS)
        if self.holds_hosts:
            go.HoldHosts(self.handle)
        kinds = [HOST, *ACCELERATORS] if self._place else served
        self.takes_hosts = HOST in kinds
        self.takes_devices = any(kind in kinds for kind in ACCELERATORS)
        self._timeout = backends.default_timeout(backend)
        self.served: tuple[runtime.Context | None, Device | None] = (None, None)

    def of_another_rank(self) -> Group:
        """The same group as another rank knows it."""
        twin = type(self).over(self.shared, self.ranks, self.group_name, self.group_desc, self.backend)
        twin.timeout, twin._bound_device, twin.store = self.timeout, self._bound_device, self.store
        return twin

    @property
    def group_name(self) -> str:
        """The same on all ranks."""
        return self._name

    @property
    def group_desc(self) -> str:
        """The program's description of it."""
        return self._description

    @property
    def is_registered(self) -> bool:
        """It was made by init_process_group or one of the functions that make groups, and not destroyed."""
        return self.alive and self.backend != Backend.UNDEFINED

    @property
    def delegate(self) -> Any:
        """The Delegate of a group that is not on the fabric; None for one that is."""
        return None if self.hooks is None else self.hooks.delegate

    @property
    def tensors(self) -> TensorClass:
        """The class of the tensors that the group's own operations use."""
        return chosen()

    def finish_hooks(self) -> None:
        """Waits for what this rank has issued, where a function is to be called when it has ended."""
        completion = self.hooks.watchers.get(Completion) if self.hooks is not None else None
        if isinstance(completion, Completion):
            completion.finish()

    @classmethod
    def custom(cls, plan: Plan) -> Group:
        """Makes a group whose backends the program has registered.

        Raises:
            NotImplementedError: the front end knows no such groups.
        """
        raise NotImplementedError(f"backend {plan.backend!r}: the front end has no backends of a program's own")

    @property
    def bound_device_id(self) -> Any:
        """The device that the program bound the group to."""
        return self._bound_device

    @bound_device_id.setter
    def bound_device_id(self, where: Any) -> None:
        if getattr(where, "index", 0) is None:
            raise RuntimeError("setBoundDeviceId must have an index")
        self._bound_device = where

    def collectives(self, on_host: bool) -> int:
        """Counts the collectives that this rank has issued, on whatever device."""
        return int(go.NextSeq(self.handle, runtime.current().rank))

    def size(self) -> int:
        """The number of ranks."""
        return len(self.ranks) if self._place is None else self._place[1]

    def rank(self) -> int:
        """This rank's number in the group; a single worker is 0."""
        if self._place is not None:
            return self._place[0]
        return 0 if self.sharded else self.index.get(runtime.current().rank, -1)

    def name(self) -> str:
        """The name of the backend."""
        return self.backend if self.delegate is None else self.delegate.name()

    @property
    def timeout(self) -> timedelta:
        """An operation may take so long, in simulated time; then it fails. Where nothing can happen at all any more,
        the deadlock is reported at once."""
        return self._timeout

    @timeout.setter
    def timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout
        self.watch(picoseconds(timeout))

    def set_timeout(self, timeout: timedelta) -> None:
        """Changes how long an operation may take that this rank issues from now on."""
        self.timeout = backends.checked_timeout(timeout, self.backend)

    def watch(self, limit: int) -> None:
        """Makes what this rank issues from now on fail after so many picoseconds; 0 is never."""
        if self.handle and not self.sharded:
            go.SetTimeout(self.handle, runtime.current().rank, limit if 0 < limit < FOR_EVER else 0)

    def get_group_store(self) -> Store:
        """A store that the members share."""
        if self._place is not None and self.store is not None:
            return self.store
        from torchemu.c10d.lifecycle import default_store
        from torchemu.c10d.stores import PrefixStore

        return PrefixStore(self.group_name, default_store())

    def abort(self) -> None:
        """Ends, with an error, what ranks have issued to the group and what waits for this rank to join it, and leaves
        the group."""
        if self.delegate is not None:
            self.delegate.abort()
        else:
            go.AbortGroup(self.handle, runtime.current().rank)
        self.alive = False

    def shutdown(self) -> None:
        """Leaves the group."""
        self.alive = False
