"""Every collective as a table: what ranks start with, and what NumPy says that each must end with."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from conftest import NUMPY

import torchemu as torch
import torchemu.distributed as dist
from torchemu.distributed import ReduceOp

Arrays = list[np.ndarray]
Group = dist.ProcessGroup


@dataclass(frozen=True)
class Case:
    """A collective with its arguments.

    Attributes:
        given: what a group rank, of so many, starts with.
        call: the collective, on tensors of what the rank starts with; gives the tensors that the rank ends with.
        want: what each group rank must end with, from what all start with.
    """

    given: Callable[[int, int], Arrays]
    call: Callable[[Group, list[torch.Tensor]], list[torch.Tensor]]
    want: Callable[[list[Arrays]], list[Arrays]]


def numbers(rank: int, *shape: int, kind: Any = np.float32) -> np.ndarray:
    """Small integers, other ones on each rank: all that becomes of them is exact."""
    rng = np.random.default_rng([rank, *shape])
    return rng.integers(-3, 4, shape).astype(kind)


def blank(shape: Any, like: torch.Tensor) -> torch.Tensor:
    """Where a collective must write: full of a number that no result has."""
    return torch.full(shape, 99, dtype=like.dtype)


def size_of(rank: int) -> int:
    """An uneven share; every third rank has nothing."""
    return (5 * rank + 4) % 6 if rank % 3 else 0


CASES: dict[str, Case] = {}


def each(result: Callable[[list[np.ndarray]], np.ndarray]) -> Callable[[list[Arrays]], list[Arrays]]:
    """All ranks end with the same."""
    return lambda starts: [[result([s[0] for s in starts])]] * len(starts)


# -- reductions


def all_reduce(op: Any, kind: Any = np.float32) -> Callable[[Callable[[list[np.ndarray]], np.ndarray]], None]:
    def add(want: Callable[[list[np.ndarray]], np.ndarray]) -> None:
        def call(g: Group, start: list[torch.Tensor]) -> list[torch.Tensor]:
            dist.all_reduce(start[0], op, group=g)
            return start

        CASES[f"all_reduce {want.__name__}"] = Case(lambda r, n: [numbers(r, 3, 5, kind=kind)], call, each(want))

    return add


@all_reduce(ReduceOp.SUM)
def total(x: list[np.ndarray]) -> np.ndarray:
    return np.sum(x, axis=0, dtype=np.float64).astype(np.float32)


@all_reduce(ReduceOp.SUM, np.int16)
def total_of_integers(x: list[np.ndarray]) -> np.ndarray:
    return np.sum(x, axis=0, dtype=np.int16)


@all_reduce(ReduceOp.AVG)
def mean(x: list[np.ndarray]) -> np.ndarray:
    return total_in_double(x) / np.float32(len(x))


def total_in_double(x: list[np.ndarray]) -> np.ndarray:
    return np.sum(x, axis=0, dtype=np.float64).astype(np.float32)


@all_reduce(ReduceOp.MIN)
def least(x: list[np.ndarray]) -> np.ndarray:
    return np.minimum.reduce(x)


@all_reduce(ReduceOp(ReduceOp.MAX))
def greatest(x: list[np.ndarray]) -> np.ndarray:
    return np.maximum.reduce(x)


@all_reduce(ReduceOp.PRODUCT, np.int64)
def product(x: list[np.ndarray]) -> np.ndarray:
    return np.multiply.reduce(x)


@all_reduce(ReduceOp.BAND, np.int32)
def conjunction(x: list[np.ndarray]) -> np.ndarray:
    return np.bitwise_and.reduce(x)


@all_reduce(ReduceOp.BOR, np.uint8)
def disjunction(x: list[np.ndarray]) -> np.ndarray:
    return np.bitwise_or.reduce(x)


@all_reduce(ReduceOp.BXOR, np.int8)
def parity(x: list[np.ndarray]) -> np.ndarray:
    return np.bitwise_xor.reduce(x)


def premultiplied(g: Group, start: list[torch.Tensor]) -> list[torch.Tensor]:
    dist.all_reduce(start[0], dist._make_nccl_premul_sum(0.5 * g.rank() - 1.5), group=g)
    return start


CASES["all_reduce with factors"] = Case(
    lambda r, n: [numbers(r, 7)],
    premultiplied,
    each(lambda x: functools.reduce(np.add, [np.float32(0.5 * r - 1.5) * a for r, a in enumerate(x)])),
)


def reduce_to_last(g: Group, start: list[torch.Tensor]) -> list[torch.Tensor]:
    dist.reduce(start[0], group_dst=g.size() - 1, op=ReduceOp.SUM, group=g)
    return start


CASES["reduce"] = Case(
    lambda r, n: [numbers(r, 4)],
    reduce_to_last,
    lambda starts: [*starts[:-1], [total_in_double([s[0] for s in starts])]],
)


def reduced_blocks(starts: list[Arrays]) -> list[Arrays]:
    return [[total_in_double([s[r] for s in starts])] for r in range(len(starts))]


def reduce_scatter(g: Group, start: list[torch.Tensor]) -> list[torch.Tensor]:
    out = blank(start[g.rank()].shape, start[0])
    dist.reduce_scatter(out, start, group=g)
    return [out]


CASES["reduce_scatter"] = Case(
    lambda r, n: [numbers(100 * r + b, size_of(b), 2) for b in range(n)], reduce_scatter, reduced_blocks
)


def reduce_scatter_tensor(shape: Callable[[int], tuple[int, ...]]) -> Case:
    def call(g: Group, start: list[torch.Tensor]) -> list[torch.Tensor]:
        out = blank((2, 3), start[0])
        dist.reduce_scatter_tensor(out, start[0], group=g)
        return [out]

    def want(starts: list[Arrays]) -> list[Arrays]:
        whole = total_in_double([s[0] for s in starts]).reshape(len(starts), 2, 3)
        return [[block] for block in whole]

    return Case(lambda r, n: [numbers(r, *shape(n))], call, want)


CASES["reduce_scatter_tensor of what lies one after another"] = reduce_scatter_tensor(lambda n: (2 * n, 3))
CASES["reduce_scatter_tensor of what is stacked"] = reduce_scatter_tensor(lambda n: (n, 2, 3))


# -- exchanges


def broadcast_from_last(g: Group, start: list[torch.Tensor]) -> list[torch.Tensor]:
    dist.broadcast(start[0], group=g, group_src=g.size() - 1)
    return start


CASES["broadcast"] = Case(
    lambda r, n: [numbers(r, 2, 3, kind=np.float16)],
    broadcast_from_last,
    lambda starts: [starts[-1]] * len(starts),
)


def all_gather(share: Callable[[int], int]) -> Case:
    def call(g: Group, start: list[torch.Tensor]) -> list[torch.Tensor]:
        outs = [blank((share(r), 2), start[0]) for r in range(g.size())]
        dist.all_gather(outs, start[0], group=g)
        return outs

    return Case(
        lambda r, n: [numbers(r, share(r), 2, kind=np.int64)],
        call,
        lambda starts: [[s[0] for s in starts]] * len(starts),
    )


CASES["all_gather"] = all_gather(lambda r: 3)
CASES["all_gather of nothing"] = all_gather(lambda r: 0)
CASES["all_gather of uneven shares"] = all_gather(size_of)


def all_gather_into_tensor(shape: Callable[[int], tuple[int, ...]]) -> Case:
    def call(g: Group, start: list[torch.Tensor]) -> list[torch.Tensor]:
        out = blank(shape(g.size()), start[0])
        dist.all_gather_into_tensor(out, start[0], group=g)
        return [out]

    return Case(
        lambda r, n: [numbers(r, 2, 3, kind=NUMPY["bfloat16"])],
        call,
        lambda starts: [[np.stack([s[0] for s in starts]).reshape(shape(len(starts)))]] * len(starts),
    )


CASES["all_gather_into_tensor one after another"] = all_gather_into_tensor(lambda n: (2 * n, 3))
CASES["all_gather_into_tensor stacked"] = all_gather_into_tensor(lambda n: (n, 2, 3))


def gather_to_last(g: Group, start: list[torch.Tensor]) -> list[torch.Tensor]:
    root = g.size() - 1
    outs = [blank((size_of(r),), start[0]) for r in range(g.size())] if g.rank() == root else None
    dist.gather(start[0], outs, group=g, group_dst=root)
    return outs or []


CASES["gather"] = Case(
    lambda r, n: [numbers(r, size_of(r), kind=np.bool_)],
    gather_to_last,
    lambda starts: [[] for _ in starts[:-1]] + [[s[0] for s in starts]],
)


def scatter_from_last(g: Group, start: list[torch.Tensor]) -> list[torch.Tensor]:
    root = g.size() - 1
    out = blank(start[g.rank()].shape, start[0])
    dist.scatter(out, start if g.rank() == root else None, group=g, group_src=root)
    return [out]


CASES["scatter"] = Case(
    lambda r, n: [numbers(100 * r + b, size_of(b)) for b in range(n)],
    scatter_from_last,
    lambda starts: [[starts[-1][r]] for r in range(len(starts))],
)


def pair_size(source: int, destination: int) -> int:
    return (source + 2 * destination) % 4


def all_to_all(g: Group, start: list[torch.Tensor]) -> list[torch.Tensor]:
    outs = [blank((pair_size(s, g.rank()), 2), start[0]) for s in range(g.size())]
    dist.all_to_all(outs, start, group=g)
    return outs


def transposed(starts: list[Arrays]) -> list[Arrays]:
    return [[s[d] for s in starts] for d in range(len(starts))]


CASES["all_to_all"] = Case(
    lambda r, n: [numbers(100 * r + d, pair_size(r, d), 2) for d in range(n)], all_to_all, transposed
)


def all_to_all_single(g: Group, start: list[torch.Tensor]) -> list[torch.Tensor]:
    out = blank(start[0].shape, start[0])
    dist.all_to_all_single(out, start[0], group=g)
    return [out]


CASES["all_to_all_single"] = Case(
    lambda r, n: [numbers(r, 2 * n, 3, kind=np.int32)],
    all_to_all_single,
    lambda starts: [[np.concatenate([s[0][2 * d : 2 * d + 2] for s in starts])] for d in range(len(starts))],
)


def all_to_all_by_splits(g: Group, start: list[torch.Tensor]) -> list[torch.Tensor]:
    me, n = g.rank(), g.size()
    receive = [pair_size(s, me) for s in range(n)]
    out = blank((sum(receive), 3), start[0])
    dist.all_to_all_single(out, start[0], receive, [pair_size(me, d) for d in range(n)], group=g)
    return [out]


def by_splits(starts: list[Arrays]) -> list[Arrays]:
    n = len(starts)
    cuts = [np.cumsum([0, *(pair_size(s, d) for d in range(n))]) for s in range(n)]
    return [[np.concatenate([starts[s][0][cuts[s][d] : cuts[s][d + 1]] for s in range(n)])] for d in range(n)]


CASES["all_to_all_single by splits"] = Case(
    lambda r, n: [numbers(r, sum(pair_size(r, d) for d in range(n)), 3)], all_to_all_by_splits, by_splits
)


# -- several in one go


def all_reduce_coalesced(g: Group, start: list[torch.Tensor]) -> list[torch.Tensor]:
    dist.all_reduce_coalesced(start, group=g)
    return start


CASES["all_reduce_coalesced"] = Case(
    lambda r, n: [numbers(r, 3), numbers(r, 0), numbers(r, 2, 2)],
    all_reduce_coalesced,
    lambda starts: [[total_in_double([s[i] for s in starts]) for i in range(3)]] * len(starts),
)


def all_gather_coalesced(g: Group, start: list[torch.Tensor]) -> list[torch.Tensor]:
    outs = [[blank(t.shape, t) for t in start] for _ in range(g.size())]
    dist.all_gather_coalesced(outs, start, group=g)
    return [t for block in outs for t in block]


CASES["all_gather_coalesced"] = Case(
    lambda r, n: [numbers(r, 3), numbers(r, 2, 2)],
    all_gather_coalesced,
    lambda starts: [[a for s in starts for a in s]] * len(starts),
)


def coalesced_all_reduce(g: Group, start: list[torch.Tensor]) -> list[torch.Tensor]:
    with dist._coalescing_manager(g):
        for t in start:
            assert dist.all_reduce(t, group=g) is None
    return start


CASES["coalescing all_reduce of two dtypes"] = Case(
    lambda r, n: [numbers(r, 3), numbers(r, 4, kind=np.float64), numbers(r, 2), numbers(r, 5)],
    coalesced_all_reduce,
    lambda starts: (
        [[np.sum([s[i] for s in starts], axis=0, dtype=np.float64).astype(a.dtype) for i, a in enumerate(starts[0])]]
        * len(starts)
    ),
)


def coalesced_all_gather(g: Group, start: list[torch.Tensor]) -> list[torch.Tensor]:
    outs = [blank((g.size(), *t.shape), t) for t in start]
    with dist._coalescing_manager(g, async_ops=True) as manager:
        for out, t in zip(outs, start, strict=True):
            dist.all_gather_into_tensor(out, t, group=g, async_op=True)
    manager.wait()
    return outs


CASES["coalescing all_gather_into_tensor"] = Case(
    lambda r, n: [numbers(r, 3), numbers(r, 2, 2), numbers(r, 1)],
    coalesced_all_gather,
    lambda starts: [[np.stack([s[i] for s in starts]) for i in range(3)]] * len(starts),
)


def coalesced_reduce_scatter(g: Group, start: list[torch.Tensor]) -> list[torch.Tensor]:
    outs = [blank(t.shape[1:], t) for t in start]
    with dist._coalescing_manager(g):
        for out, t in zip(outs, start, strict=True):
            dist.reduce_scatter_tensor(out, t, group=g)
    return outs


CASES["coalescing reduce_scatter_tensor"] = Case(
    lambda r, n: [numbers(r, n, 3), numbers(r, n, 2, 2)],
    coalesced_reduce_scatter,
    lambda starts: [[total_in_double([s[i][r] for s in starts]) for i in range(2)] for r in range(len(starts))],
)
