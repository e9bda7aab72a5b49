"""How each collective is called, and what should come out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandwidth.options import Options
from bandwidth.values import DTYPES, block, reduced, term
from torchemu.c10d.ops import KINDS, OPS, Kind


@dataclass
class Call:
    """One rank's measurement of one size: the tensors, and what should be in the output.

    Attributes:
        give: the input of ``count`` elements for each block, or of the whole vector.
        take: the output; after prepare() in place it shares memory with the input.
    """

    torch: Any
    rank: int
    world: int
    count: int  # of a rank's block, or of the vector where there are no blocks
    options: Options
    in_place: bool = False
    give: Any = None
    take: Any = None

    @property
    def kind(self) -> Any:
        """NumPy's dtype."""
        return DTYPES[self.options.dtype][1]

    def tensor(self, array: np.ndarray) -> Any:
        """A tensor of the rank's device with these elements."""
        t = self.empty(array.size)
        t.copy_(self.torch.from_numpy(array))
        return t

    def empty(self, count: int) -> Any:
        """A tensor without particular elements."""
        return self.torch.empty(count, dtype=getattr(self.torch, DTYPES[self.options.dtype][0]))

    def part(self, t: Any, rank: int) -> Any:
        """The block of a rank in a tensor that has one for each."""
        return t[rank * self.count : (rank + 1) * self.count]

    def parts(self, t: Any) -> list[Any]:
        """The blocks of all ranks."""
        return [self.part(t, r) for r in range(self.world)]


Sizes = tuple[bool, bool]
"""Says whether a rank's input and output have a block for each rank."""


@dataclass(frozen=True)
class Collective:
    """A collective as nccl-tests measure it.

    Attributes:
        name: nccl-tests'.
        kind: the row of torchemu's table of collectives; None: it is made of messages.
        issue: calls it.
        expected: gives a rank's result; None where it has none.
        overlaps: its input can be a part of its output, or the other way round.
    """

    name: str
    kind: Kind | None
    issue: Callable[[Call], None]
    expected: Callable[[Call], np.ndarray | None]
    overlaps: bool = True

    @property
    def blocks(self) -> Sizes:
        """Says of what is given and what is taken whether it has a block for each rank."""
        return (False, False) if self.kind is None else self.kind.blocks

    @property
    def reduces(self) -> bool:
        """It has a reduce op."""
        return self.kind is not None and self.kind.reduces

    @property
    def rooted(self) -> bool:
        """It has a root."""
        return self.kind is not None and self.kind.rooted

    def bus(self, ranks: int) -> float:
        """The bus bandwidth, as a multiple of the algorithm bandwidth."""
        return 1.0 if self.kind is None else self.kind.bus_bandwidth(ranks)

    @property
    def cut(self) -> bool:
        """Says whether vectors are cut into a block for each rank."""
        return any(self.blocks)

    def prepare(self, call: Call) -> None:
        """Makes the tensors and fills the input."""
        sizes = [call.count * (call.world if many else 1) for many in self.blocks]
        values = (
            term(call.rank, call.world, sizes[0], call.options.op, call.kind)
            if self.reduces
            else block(call.rank, 0, sizes[0], call.kind)
        )
        if not (call.in_place and self.overlaps):
            call.give, call.take = call.tensor(values), call.empty(sizes[1])
            if sizes[0] == sizes[1] and not self.cut and self.overlaps:
                call.take.copy_(call.give)  # torch.distributed has these in place only
        elif sizes[0] >= sizes[1]:
            call.give = call.tensor(values)
            call.take = call.part(call.give, call.rank) if sizes[0] > sizes[1] else call.give
        else:
            call.take = call.empty(sizes[1])
            call.give = call.part(call.take, call.rank)
            call.give.copy_(call.torch.from_numpy(values))


def _op(c: Call) -> Any:
    return getattr(c.torch.distributed.ReduceOp, {"prod": "PRODUCT"}.get(c.options.op, c.options.op.upper()))


def _issue(kind: Kind) -> Callable[[Call], None]:
    """Makes the call of a kind."""
    whole = [op.name for op in OPS.values() if op.kind is kind and op.whole and op.method and not op.several]
    function, tensors = (whole[0], _flat) if whole else (kind.name, _listed)

    def issue(c: Call) -> None:
        options = {"op": _op(c)} if kind.reduces else {}
        if kind.rooted:
            options["src" if kind.from_root else "dst"] = c.options.root
        getattr(c.torch.distributed, function)(*tensors(kind, c), **options)

    return issue


def _flat(_: Kind, c: Call) -> list[Any]:
    """The output and the input of a function that takes blocks in one tensor."""
    return [c.take, c.give]


def _listed(kind: Kind, c: Call) -> list[Any]:
    """Returns the arguments of a function with blocks in a list, which only a root has, if there is one."""
    own, whole = (c.give, c.take) if kind.gathers else (c.take, c.give)
    return [own] if kind.in_place else [own, c.parts(whole) if c.rank == c.options.root else None]


def _expected(kind: Kind) -> Callable[[Call], np.ndarray | None]:
    """Makes what gives a rank's result of a kind."""

    def expected(c: Call) -> np.ndarray | None:
        if kind.to_root and c.rank != c.options.root:
            return None
        if kind.exchanges:
            return np.concatenate([block(r, c.rank * c.count, c.count, c.kind) for r in range(c.world)])
        if kind.gathers:
            return np.concatenate([block(r, 0, c.count, c.kind) for r in range(c.world)])
        count = c.count * (c.world if kind.scatters else 1)
        whole = reduced(c.world, count, c.options.op, c.kind) if kind.reduces else _roots(c, count)
        return whole[c.rank * c.count : (c.rank + 1) * c.count] if kind.scatters else whole

    return expected


def _roots(c: Call, count: int) -> np.ndarray:
    return block(c.options.root, 0, count, c.kind)


def _sendrecv(c: Call) -> None:
    dist = c.torch.distributed
    ahead, behind = (c.rank + 1) % c.world, (c.rank - 1) % c.world
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, c.give, ahead), dist.P2POp(dist.irecv, c.take, behind)]):
        work.wait()


_NAMES = {"all_to_all": "alltoall"}
"""The names of nccl-tests, where they are not torch.distributed's."""

_MEASURED = [
    *(
        Collective(_NAMES.get(kind.name, kind.name), kind, _issue(kind), _expected(kind), overlaps=not kind.exchanges)
        for kind in KINDS.values()
    ),
    Collective(
        "sendrecv", None, _sendrecv, lambda c: block((c.rank - 1) % c.world, 0, c.count, c.kind), overlaps=False
    ),
]

COLLECTIVES = {collective.name: collective for collective in _MEASURED}
