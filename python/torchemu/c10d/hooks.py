"""Watchers are called before and after each operation that a rank issues to a process group: a program's hooks, the
check for NaN, the flight recorder."""

from __future__ import annotations

import contextlib
import enum
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from torchemu.c10d.ops import OPS
from torchemu.c10d.work import Work
from torchemu.runtime.buffer import buffer_of, class_of

if TYPE_CHECKING:
    from torchemu.bridge.calls import Call, Side
    from torchemu.c10d.group import Delegate, Group


class HookOpName(enum.Enum):
    """The kinds of operations, as hooks are told them."""

    SEND = 0
    RECV = 1
    BROADCAST = 2
    ALLREDUCE = 3
    REDUCE = 4
    ALLGATHER = 5
    REDUCE_SCATTER = 6
    ALLTOALL = 7
    BARRIER = 8
    SCATTER = 9
    GATHER = 10
    SPLIT = 11
    NEW_WINDOW = 12
    ALLREDUCE_COALESCED = 13
    ALLGATHER_BASE = 14
    ALLGATHER_COALESCED = 15
    ALLGATHER_INTO_TENSOR_COALESCED = 16
    REDUCE_SCATTER_BASE = 17
    REDUCE_SCATTER_TENSOR_COALESCED = 18
    ALLTOALL_BASE = 19
    UNKNOWN = 20


def _kind(name: str) -> HookOpName:
    """Returns what hooks are told of an operation of a name."""
    if name in OPS:
        name = OPS[name].hook
    return HookOpName.__members__.get(name.upper(), HookOpName.UNKNOWN)


@dataclass(frozen=True)
class Operation:
    """An operation is what a rank is about to issue to a group.

    Attributes:
        name: what the program called.
        peer: the group rank of the root, or of the other side of a message (-1: anybody); -1 without one.
        outs, ins: what the rank receives and gives.
        async_op: the program waits by itself.
        number: how many operations the rank has issued to the group before, from its first hook on.
    """

    name: str
    peer: int
    outs: Sequence[Any]
    ins: Sequence[Any]
    async_op: bool
    number: int

    @property
    def is_message(self) -> bool:
        """Returns whether it is between two ranks."""
        return self.name in ("send", "recv")

    @property
    def is_rooted(self) -> bool:
        """Returns whether it has a root."""
        return not self.is_message and OPS[self.name].kind.rooted

    @property
    def is_silent(self) -> bool:
        """Returns whether its tensors are no business of the program, as a barrier's are not."""
        return not self.is_message and OPS[self.name].silent

    @property
    def in_place(self) -> bool:
        """Returns whether the tensors that it writes are those that it reads."""
        return not self.is_message and OPS[self.name].kind.in_place


class PreHookArgs:
    """The argument of a hook that is called before an operation is issued.

    Attributes:
        name: its kind.
        async_op: the program waits by itself.
        input_tensors, output_tensors: what the rank gives and receives; those of an operation in place are inputs.
        root: the group rank of the root; -1 without one.
        op_id: how many operations of the group this rank's hooks have seen before.
    """

    def __init__(self, of: Operation) -> None:
        self.name, self.async_op, self.op_id = _kind(of.name), of.async_op, of.number
        self.root = of.peer if of.is_rooted else -1
        self.input_tensors = [] if of.is_silent else list(of.ins or of.outs if of.in_place else of.ins)
        self.output_tensors = [] if of.is_silent or of.in_place else list(of.outs)


@dataclass(frozen=True)
class PostHookArgs:
    """The argument of a hook that is called after an operation was issued.

    Attributes:
        name, async_op, op_id: as before.
        work: the operation.
    """

    name: HookOpName
    async_op: bool
    work: Work | None
    op_id: int


class Watched(Protocol):
    """A group as watchers know it: a front end's class of groups has these attributes.

    Attributes:
        hooks: the watchers of what this rank issues; None for none.
        backend: the backend's name, as the program gave it.
        ranks: the members' numbers in the default group, by group rank.
        group_name, group_desc: the group's name and the program's description of it.
        timeout: how long an operation may take.
    """

    hooks: Hooks | None
    backend: str
    ranks: tuple[int, ...]

    @property
    def group_name(self) -> str: ...
    @property
    def group_desc(self) -> str: ...
    @property
    def timeout(self) -> timedelta: ...

    def rank(self) -> int:
        """Returns this rank's number in the group."""

    def collectives(self, on_host: bool) -> int:
        """Counts the collectives that this rank has issued: of the host's tensors, or of devices', where these have a
        count of their own."""


class Watcher:
    """One who looks at all that a rank issues to a group. This one does nothing."""

    def before(self, group: Watched, operation: Operation) -> None:
        """Called before the operation is issued. What it raises is the caller's."""

    def after(self, operation: Operation, work: Any) -> None:
        """Called when it has been."""

    def batch(self, group: Watched, begins: bool) -> None:
        """Called before and after messages that are issued in one go."""


class Estimator(Protocol):
    """One who works out how long operations would take."""

    def collective(self, group: Group, call: Call, out: Side, given: Side) -> None:
        """Adds a collective; see bridge.calls.issue for the arguments."""

    def message(self, group: Group, sending: bool, peer: int, nbytes: int) -> None:
        """Adds a message to, or from, a group rank."""


Issued = TypeVar("Issued")
"""A front end's class of works."""


class Hooks:
    """The watchers of what a rank issues to a group, in the order of their coming.

    Attributes:
        watchers: by who they are for.
        estimator: who works out how long operations would take, which then are not issued; None for nobody.
        delegate: who does the operations of a group that is not on the fabric; None for one that is.
    """

    def __init__(self, delegate: Delegate | None = None) -> None:
        self.watchers: dict[object, Watcher] = {}
        self.estimator: Estimator | None = None
        self.delegate = delegate
        self._numbers = itertools.count()

    def around(
        self,
        group: Watched,
        start: Callable[[], Issued],
        name: str,
        peer: int,
        tensors: tuple[Sequence[Any], Sequence[Any]],
        async_op: bool,
    ) -> Issued:
        """Starts an operation, and tells everybody before and after.

        Args:
            start: issues it.
            name, peer, async_op: as Operation has them.
            tensors: what the rank receives, and what it gives.
        """
        operation = Operation(name, peer, *tensors, async_op, next(self._numbers))
        watchers = list(self.watchers.values())
        for watcher in watchers:
            watcher.before(group, operation)
        work = start()
        for watcher in watchers:
            watcher.after(operation, work)
        return work


@contextlib.contextmanager
def batched(group: Watched | None) -> Iterator[None]:
    """Tells those who look at the group that the messages of the block are issued in one go."""
    if group is None or group.hooks is None:
        yield
        return
    watchers = list(group.hooks.watchers.values())
    for watcher in watchers:
        watcher.batch(group, begins=True)
    try:
        yield
    finally:
        for watcher in watchers:
            watcher.batch(group, begins=False)


class _Called(Watcher):
    """A program's function, called before operations or after them."""

    def __init__(self, pre: Callable[[PreHookArgs], Any] | None, post: Callable[[PostHookArgs], Any] | None) -> None:
        self._pre, self._post = pre, post

    def before(self, group: Watched, operation: Operation) -> None:
        if self._pre is not None:
            self._pre(PreHookArgs(operation))

    def after(self, operation: Operation, work: Work) -> None:
        if self._post is not None:
            told = PostHookArgs(_kind(operation.name), operation.async_op, work, operation.number)
            self._post(told)


def calls_before(hook: Callable[[PreHookArgs], Any]) -> Watcher:
    """One who calls a function before each operation."""
    return _Called(hook, None)


def calls_after(hook: Callable[[PostHookArgs], Any]) -> Watcher:
    """One who calls a function after each operation was issued."""
    return _Called(None, hook)


def attach(group: Watched, key: object, watcher: Watcher) -> None:
    """Makes one look at what this rank issues to the group from now on, instead of one with the same key."""
    if group.hooks is None:
        group.hooks = Hooks()
    group.hooks.watchers[key] = watcher


def detach(group: Watched, key: object) -> None:
    """Ends that. Without anybody who looks, operations cost what they did before."""
    if group.hooks is not None:
        group.hooks.watchers.pop(key, None)
        _forget_idle(group)


class Hooked:
    """A mixin of groups whose operations programs can watch."""

    def _watched(self) -> Watched:
        return self  # type: ignore[return-value]  # it is mixed into a front end's class of groups

    def register_pre_hook(self, hook_id: int, hook: Callable[[PreHookArgs], Any]) -> None:
        """Calls a function before each operation that this rank issues to the group."""
        attach(self._watched(), ("pre", hook_id), calls_before(hook))

    def unregister_pre_hook(self, hook_id: int) -> None:
        """Calls it no more."""
        detach(self._watched(), ("pre", hook_id))

    def register_post_hook(self, hook_id: int, hook: Callable[[PostHookArgs], Any]) -> None:
        """Calls a function after each operation that this rank issues to the group."""
        attach(self._watched(), ("post", hook_id), calls_after(hook))

    def unregister_post_hook(self, hook_id: int) -> None:
        """Calls it no more."""
        detach(self._watched(), ("post", hook_id))


def set_estimator(group: Group, estimator: Estimator | None) -> None:
    """Lets one work out how long operations would take, instead of issuing them; None ends that."""
    if group.hooks is None:
        group.hooks = Hooks()
    group.hooks.estimator = estimator
    _forget_idle(group)


def _forget_idle(group: Watched) -> None:
    hooks = group.hooks
    if hooks is not None and not hooks.watchers and hooks.estimator is None and hooks.delegate is None:
        group.hooks = None


# -- the check for NaN

_NAN_CHECK = ("TORCH_NCCL_NAN_CHECK", "TORCH_DIST_NAN_CHECK")
TRUE = ("1", "Y", "YES", "T", "TRUE", "ON")
"""Values of environment variables that mean yes."""


class NanCheckHook(Watcher):
    """Looks for NaN in what a rank gives. The host waits for the tensors, and for the operation that looks at them.

    ``NanCheckHook.attach(group)`` makes one.
    """

    def __init__(self, group: Watched) -> None:
        self._group = group

    @staticmethod
    def attach(pg: Watched) -> NanCheckHook:
        """Checks what this rank gives to operations of the group from now on."""
        hook = NanCheckHook(pg)
        attach(pg, NanCheckHook, hook)
        return hook

    def remove(self) -> None:
        """Checks no more."""
        detach(self._group, NanCheckHook)

    def before(self, group: Watched, operation: Operation) -> None:
        """Raises RuntimeError when there is a NaN in what the rank gives."""
        if not operation.is_silent and any(_has_nan(t) for t in operation.ins):
            raise RuntimeError("NaN found in input tensor.")


def _has_nan(tensor: Any) -> bool:
    buffer, tensors = buffer_of(tensor), class_of(tensor)
    assert buffer is not None and tensors is not None
    return buffer.dtype.is_inexact and buffer.numel() > 0 and tensors.has_nan(tensor)


def check_as_asked_for(group: Watched) -> None:
    """Attaches the check for NaN to a new group where the environment asks for it."""
    if any(os.environ.get(name, "").upper() in TRUE for name in _NAN_CHECK):
        NanCheckHook.attach(group)
