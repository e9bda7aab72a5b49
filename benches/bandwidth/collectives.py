"""How each collective is called, and what should come out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandwidth.options import Options
from bandwidth.values import DTYPES, block, reduced, term


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
"""Whether a rank's input and output have a block for each rank."""


@dataclass(frozen=True)
class Collective:
    """How a collective is called and what comes out.

    Attributes:
        blocks: see Sizes.
        bus: the bus bandwidth, as a multiple of the algorithm bandwidth.
        issue: calls it.
        expected: a rank's result; None where it has none.
        reduces, rooted: whether it has a reduce op, and a root.
        overlaps: whether its input can be a part of its output, or the other way round.
    """

    name: str
    blocks: Sizes
    bus: Callable[[int], float]
    issue: Callable[[Call], None]
    expected: Callable[[Call], np.ndarray | None]
    reduces: bool = False
    rooted: bool = False
    overlaps: bool = True

    @property
    def cut(self) -> bool:
        """Whether vectors are cut into a block for each rank."""
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


def _gather(c: Call) -> None:
    root = c.options.root
    c.torch.distributed.gather(c.give, c.parts(c.take) if c.rank == root else None, dst=root)


def _scatter(c: Call) -> None:
    root = c.options.root
    c.torch.distributed.scatter(c.take, c.parts(c.give) if c.rank == root else None, src=root)


def _sendrecv(c: Call) -> None:
    dist = c.torch.distributed
    ahead, behind = (c.rank + 1) % c.world, (c.rank - 1) % c.world
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, c.give, ahead), dist.P2POp(dist.irecv, c.take, behind)]):
        work.wait()


def _all_blocks(c: Call) -> np.ndarray:
    return np.concatenate([block(r, 0, c.count, c.kind) for r in range(c.world)])


def _own_part(c: Call, whole: np.ndarray) -> np.ndarray:
    return whole[c.rank * c.count : (c.rank + 1) * c.count]


def _reduction(c: Call, blocks: int = 1) -> np.ndarray:
    return reduced(c.world, blocks * c.count, c.options.op, c.kind)


def _at_root(c: Call, values: Callable[[Call], np.ndarray]) -> np.ndarray | None:
    return values(c) if c.rank == c.options.root else None


def _share(n: int) -> float:
    return (n - 1) / n


COLLECTIVES = {
    c.name: c
    for c in (
        Collective(
            "all_reduce", (False, False), lambda n: 2 * _share(n),
            lambda c: c.torch.distributed.all_reduce(c.take, op=_op(c)), _reduction, reduces=True,
        ),
        Collective(
            "all_gather", (False, True), _share,
            lambda c: c.torch.distributed.all_gather_into_tensor(c.take, c.give), _all_blocks,
        ),
        Collective(
            "reduce_scatter", (True, False), _share,
            lambda c: c.torch.distributed.reduce_scatter_tensor(c.take, c.give, op=_op(c)),
            lambda c: _own_part(c, _reduction(c, c.world)), reduces=True,
        ),
        Collective(
            "broadcast", (False, False), lambda n: 1.0,
            lambda c: c.torch.distributed.broadcast(c.take, src=c.options.root),
            lambda c: block(c.options.root, 0, c.count, c.kind), rooted=True,
        ),
        Collective(
            "reduce", (False, False), lambda n: 1.0,
            lambda c: c.torch.distributed.reduce(c.take, dst=c.options.root, op=_op(c)),
            lambda c: _at_root(c, _reduction), reduces=True, rooted=True,
        ),
        Collective("gather", (False, True), _share, _gather, lambda c: _at_root(c, _all_blocks), rooted=True),
        Collective(
            "scatter", (True, False), _share, _scatter,
            lambda c: _own_part(c, block(c.options.root, 0, c.world * c.count, c.kind)), rooted=True,
        ),
        Collective(
            "alltoall", (True, True), _share, lambda c: c.torch.distributed.all_to_all_single(c.take, c.give),
            lambda c: np.concatenate([block(r, c.rank * c.count, c.count, c.kind) for r in range(c.world)]),
            overlaps=False,
        ),
        Collective(
            "sendrecv", (False, False), lambda n: 1.0, _sendrecv,
            lambda c: block((c.rank - 1) % c.world, 0, c.count, c.kind), overlaps=False,
        ),
    )
}  # fmt: skip
