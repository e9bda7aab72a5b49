"""Memory that device programs use: what PyTorch does with it has its effect when the rank's stream has come there.

An operation is computed at once as long as nothing else can see when. Kernels and peers can: those of a device work
in simulated time. So operations on memory that a launch uses which is not over, or that is symmetric, are put on the
stream themselves (`language._put_off`); their results have shapes and no elements until then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from torchemu.frontends.torch.device import deferral, peers, places, reading
from torchemu.frontends.torch.device.ground import RankLocal, context
from torchemu.frontends.torch.unwaited_uses import operands
from torchemu.language._program import READS, RELEASES, WRITES
from torchemu.language._put_off import PutOff
from torchemu.language._windows import shown
from torchemu.runtime.buffer import buffer_of, copied_afar

if TYPE_CHECKING:
    from torchemu.frontends.torch.device.dispatch import RankMode
    from torchemu.frontends.torch.device.operations import Operation

_WITHOUT_ELEMENTS = ("view", "factory", "composite")
"""Kinds of operations that look at no element, or are made of others that do."""


class Uses:
    """The uses of a storage by device programs.

    Attributes:
        is_symmetric: other ranks use it, too.
    """

    __slots__ = ("_launches", "is_symmetric")

    def __init__(self) -> None:
        self.is_symmetric = False
        self._launches: list[Any] = []

    def add(self, launch: Any) -> None:
        """Notes a launch that uses it until it is over."""
        if not self._launches or self._launches[-1] is not launch:
            self._launches = [one for one in self._launches if not one.over]
            self._launches.append(launch)

    def is_live(self) -> bool:
        """Reports whether a program uses it."""
        return self.is_symmetric or any(not launch.over for launch in self._launches)


class Watch:
    """One rank's look at its operations.

    Attributes:
        is_on: some memory may be in use.
    """

    def __init__(self) -> None:
        self.is_on = False
        self._open: PutOff | None = None  # takes operations, and is not on the stream yet
        self._rank = context()

    def add(self, compute: Callable[[], object], tensors: Sequence[torch.Tensor]) -> None:
        """Puts a computation off that uses tensors of devices."""
        batch = self._batch()
        batch.add(compute)
        for tensor in tensors:
            note(tensor.untyped_storage(), batch)

    def touch(self, op: Operation, tensors: Sequence[torch.Tensor], use: int) -> None:
        """Lets programs see what an operation reads, before it, or has written: those that wait for a word, and the
        checker."""
        checks = self._rank.world.strictness.check
        seen = [t for t in tensors if (uses := uses_of(t)) is not None and (checks or uses.is_live())]
        if seen and (checks or use == WRITES):
            self._batch().add_access(op.name, [buffer_of(t) for t in seen], use)

    def store_words(self, name: str, tensor: torch.Tensor, value: int) -> None:
        """Puts a store of words on the stream: who looks at them comes after all that was on the stream before."""

        def compute() -> None:
            with torch._C._AutoDispatchBelowAutograd(), _disable_current_modes():
                tensor.fill_(value)

        self.add(compute, [tensor])
        self._batch().add_access(name, [buffer_of(tensor)], RELEASES)

    def _batch(self) -> PutOff:
        if self._open is None:
            self._rank.issue()
            self._open = PutOff()
        return self._open

    def start(self) -> None:
        """Puts on the rank's current stream what has been put off so far."""
        batch, self._open = self._open, None
        if batch is not None:
            batch.start()


_WATCH: RankLocal[Watch] = RankLocal(Watch)


def current() -> Watch:
    """Returns the running rank's."""
    return _WATCH.get()


def uses_of(tensor: torch.Tensor) -> Uses | None:
    """Returns the uses of a tensor's storage by device programs; None where there were none."""
    if tensor.layout is not torch.strided:
        return None
    found: Uses | None = getattr(tensor.untyped_storage(), "_uses", None)
    return found


def note(storage: Any, launch: Any) -> None:
    """Notes that a launch uses a storage until it is over."""
    uses = getattr(storage, "_uses", None)
    if uses is None:
        uses = storage._uses = Uses()
    uses.add(launch)
    current().is_on = True


def note_symmetric(storage: Any) -> None:
    """Notes that other ranks use a storage, too."""
    storage._uses = Uses()
    storage._uses.is_symmetric = True
    current().is_on = True


def is_live(tensors: Sequence[torch.Tensor]) -> bool:
    """Reports whether a device program uses one of these tensors."""
    return any((uses := uses_of(t)) is not None and uses.is_live() for t in tensors)


def may_have_words(tensors: Sequence[torch.Tensor], of: torch.Tensor) -> bool:
    """Reports whether a kernel that uses tensors may wait, by a word in one of them, for what other streams do with
    another one: in symmetric memory, or in what other programs use."""
    found = [(t, uses) for t in tensors if (uses := uses_of(t)) is not None and uses.is_live()]
    return any(uses.is_symmetric or t is not of for t, uses in found)


def before_use(tensors: Sequence[torch.Tensor]) -> None:
    """Makes the host wait until the elements of tensors are there: for collectives' data, and for its stream if device
    programs use one of them."""
    deferral.before_use(tensors)
    if current().is_on and is_live(tensors):
        reading.catch_up()


def before_move(storage: Any) -> None:
    """Makes the host wait until nothing is yet to use a storage's memory, which is about to move.

    Raises:
        RuntimeError: other ranks have its address.
    """
    if getattr(storage, "_shared", False):
        raise RuntimeError("Trying to resize storage that is not resizable: it is symmetric memory")
    uses: Uses | None = getattr(storage, "_uses", None)
    deferral.before_resize(storage)
    if uses is not None and uses.is_live():
        reading.catch_up()


def run(mode: RankMode, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Does an operation of a rank with device programs, or puts it on the stream."""
    if op.is_made_of_others or op.kind in _WITHOUT_ELEMENTS or not is_live([*deferral.tensors((args, kwargs))]):
        return peers.run(mode, op, args, kwargs)
    if mode.deferred.works:
        mode.deferred.catch_up()
    if op.name == "copy_" and _is_afar(args) and copied_afar(args[0], args[1]):
        return args[0]
    reads, writes = operands(op.func, args, kwargs)
    mode.watch.touch(op, reads, READS)
    with peers.charged(mode, op, reads, writes):
        out = _run_in_order(mode, op, args, kwargs)
    mode.watch.touch(op, writes, WRITES)
    return out


def _run_in_order(mode: RankMode, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Puts an operation on the stream, or does it when the stream has come there."""
    at, nbytes = op.survey(args, kwargs, checks=op.kind == "kernel")
    if at is None or op.kind not in ("kernel", "move") or op.fills or not deferral.can_be_put_off(op):
        reading.catch_up()
        return mode.at_once(op, args, kwargs)
    if op.kind == "move":
        return _moved(mode, op, args, kwargs)
    mode.last = at
    return mode.made(op, args, kwargs, _put_off(mode.watch, op, args, mode.on_host(kwargs), True), at, nbytes)


def _is_afar(args: Sequence[Any]) -> bool:
    """Reports whether one of a copy's two tensors is memory of another rank that only device programs know."""
    return any(peers.home_of(t) is None and shown(buffer_of(t).memory) is not None for t in args[:2])


def _moved(mode: RankMode, op: Operation, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Puts a copy on the stream, unless the host waits for it."""
    to, source, late = mode.ends_of(op, args, kwargs)
    if to is None and not late:
        return mode.at_once(op, args, kwargs)
    out = _put_off(mode.watch, op, args, mode.on_host(kwargs), to is not None)
    if to is not None and op.name != "copy_":
        mode.settle(out, to)
    mode.last = to
    mode.charge_copy(op, source, out, to, late)
    return out


def _put_off(watch: Watch, op: Operation, args: Sequence[Any], kwargs: dict[str, Any], on_device: bool) -> Any:
    """Puts an operation on the stream. Returns its results, which have no elements yet, on the device or the host."""
    args = [*args[:1], *map(_snapshot, args[1:])] if op.in_place else [*map(_snapshot, args)]
    compute, result, made = deferral.recorded(op, args, kwargs)

    def on_stream() -> None:
        with torch._C._AutoDispatchBelowAutograd(), _disable_current_modes():
            compute()

    used = [t for t in deferral.tensors((args, kwargs)) if places.of(t) is not None]
    watch.add(on_stream, [*used, *(deferral.tensors(made) if on_device else ())])
    return result


def _snapshot(value: Any) -> Any:
    """An argument whose elements are in the host's memory, as they are now."""
    if isinstance(value, torch.Tensor) and places.of(value) is None and not value.is_meta:
        with torch._C._AutoDispatchBelowAutograd(), _disable_current_modes():
            return value.clone()
    return value
