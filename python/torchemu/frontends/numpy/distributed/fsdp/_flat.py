"""The parameters of a unit as one vector, of which each rank keeps a part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torchemu.frontends.numpy._grad_mode import enable_grad, no_grad
from torchemu.frontends.numpy._streams import Stream, current_stream
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import empty, zeros
from torchemu.frontends.numpy.autograd.variable import Variable
from torchemu.frontends.numpy.distributed import (
    ProcessGroup,
    all_gather_into_tensor,
    all_reduce,
    reduce_scatter_tensor,
)
from torchemu.frontends.numpy.distributed.fsdp.api import MixedPrecision
from torchemu.frontends.numpy.nn.modules.module import Module
from torchemu.frontends.numpy.nn.parameter import Parameter

_ALIGNMENT = 16
"""Bytes at whose multiples original parameters begin in the vector."""


class FlatParameter(Parameter):
    """A rank's part of the parameters of a unit."""


@dataclass(frozen=True)
class Place:
    """A parameter in the vector.

    Attributes:
        owners: the modules that have it, each with its name there.
        path: its name in the unit.
        param: the parameter; its elements are in the vector.
        begin, end: elements of the vector.
    """

    owners: tuple[tuple[Module, str], ...]
    path: str
    param: Tensor
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Sharding:
    """How a unit is distributed.

    Attributes:
        group: the ranks that share the vector.
        replicas: the ranks that have the same part, if any; None: only this one.
        splits: a rank keeps a part, and not the whole.
        regathers: parameters are gathered again for backward passes.
        as_originals: the program sees the original parameters, and not the vector.
        precision: dtypes.
    """

    group: ProcessGroup
    replicas: ProcessGroup | None
    splits: bool
    regathers: bool
    as_originals: bool
    precision: MixedPrecision


class Streams:
    """The streams beside the computation, of all units of a module: what is on them waits for what it needs only, so
    that it runs ahead.

    Attributes:
        gather: on which parameters are gathered.
        reduce: on which gradients are reduced.
        prefetches: before a unit's backward pass the parameters of the next one are gathered too, ahead of the unit's
            gradients.
    """

    def __init__(self, prefetches: bool) -> None:
        self.gather, self.reduce, self.prefetches = Stream(), Stream(), prefetches
        self._passes: list[Regathering] = []

    def begin(self) -> None:
        """Before a forward pass: parameters are what the program has made of them by now."""
        self.gather.wait_stream(current_stream())
        self._passes.clear()

    def expect(self, regathering: Regathering) -> None:
        """After a unit's forward pass: there will be a backward pass."""
        self._passes.append(regathering)

    def regather(self, regathering: Regathering) -> None:
        """Before a unit's backward pass."""
        regathering.start()
        if regathering in self._passes:
            at = self._passes.index(regathering)
            if at and self.prefetches:
                self._passes[at - 1].start()
            del self._passes[at:]
        if regathering.event is not None:
            current_stream().wait_event(regathering.event)


class Regathering:
    """The parameters of one forward pass of a unit, to be gathered again before its backward pass.

    Args:
        handle: the unit's.
        full: the vector.

    Attributes:
        event: when they are there; None before it is begun, and where they are there in any case.
    """

    def __init__(self, handle: FlatHandle, full: Tensor) -> None:
        self._handle, self._full = handle, full
        self.event: Any = None

    def start(self) -> None:
        """Gathers as many bytes as in the forward pass, unless that has begun. The elements are there already."""
        if self.event is None and self._handle.splits and self._handle.regathers:
            self.event = self._handle.gather_again(self._full)

    def finish(self) -> None:
        """Before the backward pass: the modules have their parameters, for what is calculated again from them."""
        with enable_grad():
            self._handle.show(self._full)
        self._handle.streams.regather(self)
        Variable._execution_engine.queue_callback(self._handle.show_shards)  # no gradient need arrive


def places_of(named: Sequence[tuple[str, Tensor, tuple[tuple[Module, str], ...]]], alignment: int) -> list[Place]:
    """Puts parameters one after the other.

    Args:
        named: their paths, themselves and their owners.
        alignment: of which number of elements each begins at a multiple.
    """
    found, begin = [], 0
    for path, p, owners in named:
        end = begin + p.numel()
        found.append(Place(owners, path, p, tuple(p.shape), begin, end))
        begin = -(-end // alignment) * alignment
    return found


class FlatHandle:
    """The parameters of one unit.

    Attributes:
        shard: this rank's part; the parameter that an optimizer sees, unless it is to see the original ones.
        places: the original parameters.
        streams: of the outermost unit, once its forward was called.
        syncs: gradients are reduced; else they are added up on each rank.
        regathers: as the sharding says; not in the outermost unit, whose backward pass comes at once.
    """

    def __init__(self, named: Sequence[Any], sharding: Sharding) -> None:
        first = named[0][1]
        self._sharding, self.streams = sharding, Streams(prefetches=False)
        kind = sharding.precision.param_dtype or first.dtype
        alignment = _ALIGNMENT // kind.itemsize if sharding.as_originals else 1
        self.places = places_of(named, alignment)
        self._ranks = sharding.group.size() if sharding.splits else 1
        self.numel = self.places[-1].end
        self.length = -(-self.numel // self._ranks)
        self.shard = FlatParameter(self._own_part(), any(p.requires_grad for _, p, _ in named))
        self.syncs, self.regathers = True, sharding.regathers
        self._unreduced: Tensor | None = None
        self._absent = empty(0, dtype=first.dtype, device=first.device)
        self._take_over()

    @no_grad()
    def _own_part(self) -> Tensor:
        first, number = self.places[0].param, self._number
        flat = zeros(self.length * self._ranks, dtype=first.dtype, device=first.device)
        for place in self.places:
            flat[place.begin : place.end].copy_(place.param.reshape(-1))
        return flat[number * self.length : (number + 1) * self.length].clone()

    @property
    def _number(self) -> int:
        return self._sharding.group.rank() if self._sharding.splits else 0

    def _take_over(self) -> None:
        """The modules have the parameters no more; the original ones become parts of the shard."""
        for place in self.places:
            if self._sharding.as_originals:
                place.param.data = self._piece(self.shard.data, place)
            for module, name in place.owners:
                module._parameters.pop(name, None)
        self.show_shards()

    def _piece(self, shard: Tensor, place: Place) -> Tensor:
        """What of a parameter is in a shard, as a vector; the whole parameter, where nothing is split."""
        start = self._number * self.length
        begin, end = (min(max(at - start, 0), self.length) for at in (place.begin, place.end))
        piece = shard[begin:end]
        return piece if self._sharding.splits else piece.view(place.shape)

    def show_shards(self) -> None:
        """Gives the modules what a program sees of their parameters between passes."""
        for place in self.places:
            for module, name in place.owners:
                vars(module).pop(name, None)
                if self._sharding.as_originals:
                    module._parameters[name] = place.param  # type: ignore[assignment] # as it was
                else:
                    vars(module)[name] = self._absent  # it is there, as for who asks whether there is a bias

    # -- gathering

    def _gather_into(self, full: Tensor, shard: Tensor) -> None:
        """On the stream for it, so that what is calculated goes on meanwhile."""
        with self.streams.gather:
            all_gather_into_tensor(full, shard, group=self._sharding.group)
        current_stream().wait_stream(self.streams.gather)

    @no_grad()
    def _shard_for_use(self) -> Tensor:
        kind = self._sharding.precision.param_dtype
        data = self.shard.data
        with self.streams.gather:
            return data if kind is None else data.to(kind)

    @no_grad()
    def whole(self, shard: Tensor) -> Tensor:
        """The vector of which each rank gives its part."""
        if not self._sharding.splits:
            return shard.clone()
        full = empty(self.length * self._ranks, dtype=shard.dtype, device=shard.device)
        self._gather_into(full, shard)
        return full

    def unshard(self) -> Tensor:
        """Gives the modules their parameters, for a forward pass. Returns the vector."""
        shard = self._shard_for_use()
        full = self.whole(shard)
        if any(p.requires_grad for p in self._seen):
            full.requires_grad_()
            full.register_post_accumulate_grad_hook(self._arrived)
        self.show(full)
        return full

    def show(self, full: Tensor) -> None:
        """Gives the modules the parameters in a vector."""
        for place, part in self.parts(full):
            shown = part.detach() if self._is_frozen(place) else part
            for module, name in place.owners:
                module._parameters.pop(name, None)
                vars(module)[name] = shown

    def parts(self, full: Tensor) -> Iterator[tuple[Place, Tensor]]:
        """The parameters in a vector, in their shapes."""
        for place in self.places:
            yield place, full[place.begin : place.end].view(place.shape)

    @no_grad()
    def gather_again(self, full: Tensor) -> Any:
        """Gathers into a vector. Returns the event of its end."""
        shard = self._shard_for_use()
        current_stream().precedes(self.streams.gather)  # who reads the vector meanwhile finds the same elements there
        with self.streams.gather:
            all_gather_into_tensor(full.data, shard, group=self._sharding.group)
        return self.streams.gather.record_event()

    # -- gradients

    def _arrived(self, full: Tensor) -> None:
        """The hook of the gathered vector: its gradient is complete."""
        grad, full.grad = full.grad, None
        assert grad is not None
        self.show_shards()
        with no_grad():
            self._unreduced = grad if self._unreduced is None else self._unreduced.add_(grad)
            if not self.syncs:
                return
            grad, self._unreduced = self._unreduced, None
            self.streams.reduce.wait_stream(current_stream())
            with self.streams.reduce:
                reduced = self._reduced(grad)
        Variable._execution_engine.queue_callback(lambda: self._take(reduced))

    def _reduced(self, grad: Tensor) -> Tensor:
        """The mean over all ranks of this rank's part."""
        precision, group, replicas = self._sharding.precision, self._sharding.group, self._sharding.replicas
        grad = grad.to(precision.reduce_dtype or precision.param_dtype or grad.dtype)
        count = group.size() * (replicas.size() if replicas is not None else 1)
        before, after = _divisors(count)
        grad = grad.div_(before) if before > 1 else grad
        part = grad
        if self._sharding.splits:
            part = empty(self.length, dtype=grad.dtype, device=grad.device)
            reduce_scatter_tensor(part, grad, group=group)
        else:
            all_reduce(part, group=group)
        if replicas is not None:
            all_reduce(part, group=replicas)
        part = part.div_(after) if after > 1 else part
        return part if precision.keep_low_precision_grads else part.to(self.shard.dtype)

    def _take(self, reduced: Tensor) -> None:
        """At the end of the pass: adds the gradient up."""
        current_stream().wait_stream(self.streams.reduce)
        with no_grad():
            if not self._sharding.as_originals:
                _add(self.shard, reduced)
                return
            for place in self.places:
                if place.param.numel() and not self._is_frozen(place):
                    _add(place.param, self._piece(reduced, place))

    def _is_frozen(self, place: Place) -> bool:
        """Whether an original parameter is to have no gradient, though others of the unit may."""
        return self._sharding.as_originals and not place.param.requires_grad

    @property
    def _seen(self) -> list[Tensor]:
        """The parameters that the program has."""
        return [place.param for place in self.places] if self._sharding.as_originals else [self.shard]

    @property
    def grads(self) -> list[Tensor]:
        """This rank's part of the gradients."""
        return [p.grad for p in self._seen if p.grad is not None]

    # -- writing back, and what an optimizer has

    @property
    def splits(self) -> bool:
        """Whether this rank has only a part."""
        return self._sharding.splits

    @property
    def group(self) -> ProcessGroup:
        """The ranks that share the vector."""
        return self._sharding.group

    @property
    def as_originals(self) -> bool:
        """Whether the program sees the original parameters."""
        return self._sharding.as_originals

    @no_grad()
    def whole_of(self, p: Tensor, value: Tensor) -> Tensor:
        """The vector of which value is this rank's part, or what this rank has of an original parameter of it."""
        self.streams.begin()
        if p is self.shard:
            return self.whole(value)
        shard = zeros(self.length, dtype=value.dtype, device=value.device)
        self._piece(shard, next(place for place in self.places if place.param is p)).copy_(value)
        return self.whole(shard)

    @no_grad()
    def part_of(self, p: Tensor, values: dict[str, Tensor], places: dict[str, Place]) -> Tensor:
        """This rank's part, of the vector or of an original parameter, of whole tensors by name."""
        some = next(iter(values.values()))
        full = zeros(self.length * self._ranks, dtype=some.dtype, device=self.shard.device)
        for name, value in values.items():
            full[places[name].begin : places[name].end].copy_(value.reshape(-1))
        shard = full[self._number * self.length : (self._number + 1) * self.length]
        if p is self.shard:
            return shard.clone()
        return self._piece(shard, next(place for place in self.places if place.param is p)).clone()

    @no_grad()
    def adopt(self, full: Tensor) -> None:
        """Takes this rank's part of the vector over into the shard."""
        start = self._number * self.length
        self.shard.data.copy_(full.detach()[start : start + self.length])


def _add(p: Tensor, grad: Tensor) -> None:
    if p.grad is None:
        p.grad = grad.clone()
    else:
        p.grad.add_(grad)


def _divisors(count: int) -> tuple[int, float]:
    """By what sums are divided before and after they are made, so that they neither overflow nor vanish: PyTorch's."""
    before = 1
    while count % before == 0 and count / before > before:
        before *= 2
    return before, count / before
