"""Operations that are put off: a rank's host goes on while the data that they need is not in place.

A collective's data is in place when all ranks have joined. A device's host does not wait for that. Here an operation
is computed when it is issued, and so the host waits where other ranks bring the data about in no simulated time. Where
they do not, because they wait for something that this rank is yet to do, operations on the data are put off: their
results have shapes and no elements until somebody looks at these. Their time is charged when they are issued.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from torchemu.frontends.torch.device import cpu_dtypes, in_flight, layouts
from torchemu.frontends.torch.device.ground import RankLocal, context, go, memory_use
from torchemu.frontends.torch.device.places import HOST, META

_IN_VAIN = -2

_MOST = 1024
"""Operations that a rank may have put off. With more, its host waits."""

_strided = torch.empty_strided
_use_count = torch._C._storage_Use_Count


class Deferred:
    """The operations that one rank has put off.

    Attributes:
        works: collectives whose data is not in place, and whose results the rank's stream waits for.
    """

    def __init__(self) -> None:
        self.works: list[Any] = []
        self._queue: deque[tuple[Callable[[], None], list[Any]]] = deque()  # with the storages that each holds
        self._computed = 0  # how many of the queue's have left it
        self._flagged: list[Any] = []  # storages whose elements are missing, or that what has been put off reads
        self._in_use: list[Any] = []  # those of them that the program may still have

    def late(self, work: Any) -> None:
        """Notes a work whose data is not in place, and that the host goes on."""
        self.works.append(work)
        memory_use.current().held_back = self._held_back
        for storage in work.storages:
            self._flag(storage, True)
        work.outputs, work._writes = _kept(work.outputs), _kept(work._writes)
        _hold(_held_by(work), 1)

    def concerns(self, reads: Sequence[torch.Tensor], writes: Sequence[torch.Tensor]) -> bool:
        """Reports whether a call needs elements that are missing, or writes where what has been put off is to read."""
        return any(_flag_of(t) is not None for t in writes) or any(_flag_of(t) for t in reads)

    def put_off(self, op: Any, args: Sequence[Any], kwargs: dict[str, Any], writes: Sequence[torch.Tensor]) -> Any:
        """Puts a call off, which writes some of its operands. Returns its results, which have no elements yet."""
        if len(self._queue) >= _MOST:
            self.catch_up()
            return cpu_dtypes.computed(op, args, kwargs)
        compute, result, made = recorded(op, args, kwargs)
        held = [tensor.untyped_storage() for tensor in (*tensors((args, kwargs)), *made)]
        for storage in held:
            self._flag(storage, False)
        for tensor in (*made, *writes):
            self._flag(tensor.untyped_storage(), True)
        _hold(held, 1)
        self._queue.append((compute, held))
        return result

    def _flag(self, storage: Any, missing: bool) -> None:
        if getattr(storage, "_late", None) is None:
            self._flagged.append(storage)
            self._in_use.append(storage)
        storage._late = missing or getattr(storage, "_late", None) or False

    def is_settled(self) -> bool:
        """Reports whether all data is in place."""
        return all(work.is_settled() for work in self.works)

    def catch_up(self) -> None:
        """Waits for the data, in no simulated time, and does what has been put off by now. Other threads of the rank
        may meanwhile put off more, which needs data that comes later."""
        works, end = list(self.works), self._computed + len(self._queue)
        try:
            for work in works:
                work.settle()
        finally:
            self.works = [work for work in self.works if work not in works]
            for work in works:
                _hold(_held_by(work), -1)
        if self.works:
            self._compute(end)
            return
        self._compute(self._computed + len(self._queue))
        flagged, self._flagged, self._in_use = self._flagged, [], []
        memory_use.current().held_back = None
        for storage in flagged:
            del storage._late

    def _compute(self, end: int) -> None:
        """Does what has been put off, in that order, up to a number of them in all."""
        with torch._C._AutoDispatchBelowAutograd(), _disable_current_modes():
            while self._computed < end:
                self._computed += 1
                compute, held = self._queue.popleft()
                compute()
                _hold(held, -1)

    def _held_back(self) -> Iterator[Any]:
        """Tells the pieces of memory of the storages that the program has no more, and this has."""
        before, self._in_use = self._in_use, []
        for storage in before:
            if _use_count(storage._cdata) > 1 + getattr(storage, "_held", 0):  # 1: the storage's object in Python
                self._in_use.append(storage)
            elif getattr(storage, "_piece", None) is not None:
                yield storage._piece


def _held_by(work: Any) -> list[Any]:
    """Returns the storages of the tensors that a work has, once for each."""
    return [tensor.untyped_storage() for tensor in tensors((work.outputs, work._writes))]


def _hold(storages: Sequence[Any], more: int) -> None:
    """Counts tensors of storages that only what is put off has."""
    for storage in storages:
        storage._held = getattr(storage, "_held", 0) + more


_DEFERRED: RankLocal[Deferred] = RankLocal(Deferred)


def current() -> Deferred:
    """Returns the running rank's."""
    return _DEFERRED.get()


def can_be_put_off(op: Any) -> bool:
    """Reports whether an operation's results are known, but for their elements, before it is computed."""
    return not (op.random or op.is_odd or op.name in _SHAPED_BY_KERNELS)


_SHAPED_BY_KERNELS = frozenset({"_embedding_bag", "_embedding_bag_forward_only", "_weight_norm_interface"})
"""Operations of which PyTorch's shape function and the CPU's kernel give results, which the backward pass takes, of
different shapes or dtypes."""


def recorded(
    op: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Callable[[], None], Any, list[torch.Tensor]]:
    """Returns what does a call later, the call's results, which have no elements until then, and the new ones of
    these."""
    kept, named = _kept(args), {name: _kept(value) for name, value in kwargs.items()}
    if op.fills:
        return lambda: _drop(op.compute(*kept, **named)), _filled(op, args, kwargs), []
    if op.in_place:
        result = args[0] if op.func._schema.returns else None
        return lambda: _drop(op.compute(*kept, **named)), result, []
    shapes = layouts.made(op, _bare(args), {name: _bare(value) for name, value in kwargs.items()})
    made = [_like(t) for t in _listed(shapes)]
    targets = _kept(made)
    result = made[0] if isinstance(shapes, torch.Tensor) else type(shapes)(made)
    return lambda: _fill(targets, cpu_dtypes.computed(op, kept, named)), result, made


def _filled(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Returns the tensors that a call computes into.

    Raises:
        RuntimeError: one of them would get another shape.
    """
    given = [kwargs[name] for name in op.fills]
    shapes = layouts.made(op, _bare(args), {name: _bare(value) for name, value in kwargs.items()})
    if any(tensor.shape != shape.shape for tensor, shape in zip(given, _listed(shapes), strict=True)):
        raise RuntimeError("PyTorch resizes what it computes into")
    return given[0] if len(given) == 1 else tuple(given)


def goes_on(work: Any) -> bool:
    """Lets the host go on without a work's data, where it would have to wait for others. Returns True: it does."""
    waits = [part for part in _parts(work) if not part.is_settled()]
    for part in waits:
        event = go.WorkSoon(part.handle)
        if event not in (0, _IN_VAIN):
            try:
                context().wait(event)
            finally:
                go.Release(event)
    for part in waits:
        if not part.is_settled():
            current().late(part)
    return True


def moves_nothing(work: Any) -> bool:
    """Lets the host go on after a work of tensors without elements, which keeps none of them. Returns True: it does."""
    for part in _parts(work):
        part.storages = ()
    return True


def before_use(tensors: Sequence[torch.Tensor]) -> None:
    """Makes sure that the elements of tensors are there, and that nothing put off is to read what they had."""
    deferred = current()
    if deferred.works and any(_flag_of(t) is not None for t in tensors):
        deferred.catch_up()


def before_resize(storage: Any) -> None:
    """Does what has been put off that needs a storage, and waits for what is to move its data."""
    if getattr(storage, "_late", None) is not None:
        current().catch_up()
    in_flight.before_move(storage)


def _parts(work: Any) -> list[Any]:
    return [part for each in work.works for part in _parts(each)] if hasattr(work, "works") else [work]


def _flag_of(tensor: torch.Tensor) -> bool | None:
    """True where elements are missing, False where something put off reads them, None elsewhere."""
    if tensor.layout is not torch.strided:
        return None
    found: bool | None = getattr(tensor.untyped_storage(), "_late", None)
    return found


def tensors(values: Any) -> Iterator[torch.Tensor]:
    """The tensors among values, in lists and dicts as well."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, dict):
        yield from tensors(list(values.values()))
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from tensors(value)


def _kept(value: Any) -> Any:
    """Arguments that stay what they are, whatever the program does with its tensors, and whose versions autograd does
    not count: that an operation writes has been counted when it was issued."""
    if isinstance(value, torch.Tensor):
        return value.data
    if isinstance(value, (list, tuple)):
        return [_kept(v) for v in value]
    return value


def _bare(value: Any) -> Any:
    """Arguments without elements."""
    if isinstance(value, torch.Tensor):
        return _strided(value.shape, value.stride(), dtype=value.dtype, device=META)
    if isinstance(value, torch.device):
        return META
    if isinstance(value, (list, tuple)):
        return [_bare(v) for v in value]
    return value


def _listed(values: Any) -> list[Any]:
    return [values] if isinstance(values, torch.Tensor) else list(values)


def _like(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return _strided(value.shape, value.stride(), dtype=value.dtype, device=HOST)


def _drop(_: Any) -> None:
    """Takes no notice of a result."""


def _fill(made: list[Any], found: Any) -> None:
    """Copies results to where the program has them. Of what it does not need, such as the statistics of a batch
    normalization that only evaluates, the CPU's kernels give nothing."""
    for target, value in zip(made, _listed(found), strict=True):
        if isinstance(target, torch.Tensor) and (value.numel() or not target.numel()):
            target.copy_(value)
