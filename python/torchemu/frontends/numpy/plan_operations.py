"""The operations of tensor parallel plans, which _plans.py runs through, on our tensors."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torchemu.frontends.numpy as torch
from torchemu.bridge.binding import go
from torchemu.frontends.numpy import distributed as dist
from torchemu.frontends.numpy._tensor import kernels
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.dispatch import _op
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.frontends.numpy.nn._functional.embedding import EMBEDDING_BACKWARD
from torchemu.frontends.numpy.nn.functional import embedding, linear

if TYPE_CHECKING:
    from torchemu.frontends.numpy._plans import Step

Sizes = Sequence[int] | None

_REDUCTIONS = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX}


@functools.lru_cache(maxsize=4096)
def _costs(world: int, topology: str, step: str, layouts: tuple[Any, ...]) -> list[tuple[int, int, str]]:
    """Asks the core what the kernels of a step take on a SIP of a World, as kernels.launch has it.

    Args:
        world, topology: whose SIP.
        step: as Step.costs has it.
        layouts: the dtype and the shape of each operand, those that it makes last.
    """
    operands = [{"DType": kind.name, "Shape": shape} for kind, shape in layouts]
    return [tuple(cost) for cost in json.loads(go.StepCosts(world, step, json.dumps(operands)))]


class Operations:
    """The operations of plans among the ranks of a group. The Go core says what they mean (tp/plan.go), and what they
    cost (tp/kernels.go).

    Args:
        group: the ranks.
    """

    def __init__(self, group: ProcessGroup) -> None:
        self.group, self.ranks = group, group.size()

    def _part(self, size: int, which: str) -> int:
        assert size % self.ranks == 0, (
            f"{which} dimension of the tensor ({size}) should be divisible by tensor parallel size ({self.ranks})"
        )
        return size // self.ranks

    def local(self, step: Step, operands: Sequence[Any]) -> Any:
        """Does a local step, whose kernels take what the plan says."""
        do = getattr(self, step.op)
        if not step.costs:
            return do(*operands, **step.parameters)
        numbers = itertools.count()

        def costs(results: tuple[Tensor, ...]) -> tuple[int, int, str]:
            layouts = tuple([(t.dtype, t._shape) for t in (*operands, *results)])
            world = results[0]._storage.world
            return _costs(world.handle, world.topology, step.costs, layouts)[next(numbers)]

        with kernels.Costing(costs):
            return do(*operands, **step.parameters)

    def collective(self, step: Step, operands: Sequence[Any]) -> tuple[Tensor, Any]:
        """Issues a step that is a collective, and returns its result and, where it is beside, its Work."""
        issued: tuple[Tensor, Any] = getattr(self, step.op)(*operands, **step.parameters, beside=step.beside)
        return issued

    # -- copies and views

    def contiguous(self, x: Tensor) -> Tensor:
        return x.contiguous()

    def copy(self, x: Tensor) -> Tensor:
        return x.detach().clone(memory_format=torch.contiguous_format)

    def rows(self, x: Tensor) -> Tensor:
        return x.reshape(-1, x.size(-1))

    def part(self, x: Tensor, dim: int = 0) -> Tensor:
        size = self._part(x.shape[dim], "Last" if dim else "First")
        return x.narrow(dim, self.group.rank() * size, size)

    def join(self, x: Tensor) -> Tensor:
        return torch.cat(x.chunk(self.ranks, dim=0), dim=-1)

    def stack(self, x: Tensor) -> Tensor:
        size = self._part(x.shape[-1], "Last")
        return torch.cat([x.narrow(-1, at * size, size) for at in range(self.ranks)], dim=0)

    def swap(self, x: Tensor) -> Tensor:
        return x.transpose(0, 1)

    def column(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1)

    def cast(self, x: Tensor, dtype: str) -> Tensor:
        return x.to(getattr(torch, dtype))

    # -- arithmetic

    def matmul(self, a: Tensor, b: Tensor, transpose_left: bool = False, transpose_right: bool = False) -> Tensor:
        return a.t().matmul(b) if transpose_left else linear(a, b if transpose_right else b.t())

    def sum_rows(self, x: Tensor) -> Tensor:
        return x.sum(dim=tuple(range(x.dim() - 1))) if x.dim() > 1 else x

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        return a + b

    def sub(self, a: Tensor, b: Tensor) -> Tensor:
        return a - b

    def div(self, a: Tensor, b: Tensor) -> Tensor:
        return a / b

    def exp(self, x: Tensor) -> Tensor:
        return x.exp()

    def log(self, x: Tensor) -> Tensor:
        return x.log()

    def max_last(self, x: Tensor) -> Tensor:
        return x.amax(dim=-1)

    def sum_last(self, x: Tensor) -> Tensor:
        return x.sum(dim=-1)

    def mean_last(self, x: Tensor) -> Tensor:
        return x.mean(dim=-1)

    def scale(self, x: Tensor, number: float = 0.0) -> Tensor:
        return number * x

    def shift_(self, x: Tensor, number: float = 0.0) -> Tensor:
        x -= number
        return x

    def mul_(self, a: Tensor, b: Tensor) -> Tensor:
        return a.mul_(b)

    # -- parts of a vocabulary

    def locate(self, tokens: Tensor, part: int) -> tuple[Tensor, Tensor]:
        first = self.group.rank() * part
        others = (tokens < first) | (tokens >= first + part)
        return others, (tokens - first).masked_fill(others, 0)

    def lookup(self, places: Tensor, table: Tensor) -> Tensor:
        return embedding(places, table)

    def mask(self, x: Tensor, others: Tensor) -> Tensor:
        return x.masked_fill(others.unsqueeze(-1), 0)

    def table_grad(self, places: Tensor, x: Tensor, part: int) -> Tensor:
        return _op(EMBEDDING_BACKWARD, (x, places), part)

    def enumerate(self, places: Tensor) -> Tensor:
        return torch.arange(places.numel(), device=places.device)

    def pick(self, x: Tensor, others: Tensor, numbers: Tensor, places: Tensor) -> Tensor:
        return x.view(-1, x.size(-1))[numbers, places.view(-1)].view_as(others).masked_fill(others, 0)

    def add_at(self, x: Tensor, others: Tensor, places: Tensor, number: float) -> Tensor:
        own = (~others.view(-1)).to(x.dtype)
        x.view(-1, x.size(-1))[self.enumerate(places), places.view(-1)] -= -number * own
        return x

    # -- collectives

    def all_reduce(self, x: Tensor, reduce: str, beside: bool) -> tuple[Tensor, Any]:
        return x, dist.all_reduce(x, op=_REDUCTIONS[reduce], group=self.group, async_op=beside)

    def all_gather(self, x: Tensor, beside: bool, sizes: Sizes = None) -> tuple[Tensor, Any]:
        rows = x.size(0) * self.ranks if sizes is None else sum(sizes)
        whole = x.new_empty((rows, *x.shape[1:]))
        if sizes is None:
            return whole, dist.all_gather_into_tensor(whole, x, group=self.group, async_op=beside)
        return whole, dist.all_gather(list(whole.split(list(sizes))), x, group=self.group, async_op=beside)

    def reduce_scatter(self, x: Tensor, beside: bool, sizes: Sizes = None) -> tuple[Tensor, Any]:
        if sizes is None:
            mine = x.new_empty((self._part(x.shape[0], "First"), *x.shape[1:]))
            return mine, dist.reduce_scatter_tensor(mine, x, group=self.group, async_op=beside)
        parts = list(x.split(list(sizes)))
        mine = torch.empty_like(parts[self.group.rank()])
        return mine, dist.reduce_scatter(mine, parts, group=self.group, async_op=beside)

    def all_to_all(self, x: Tensor, beside: bool, sizes: Sizes = None, in_sizes: Sizes = None) -> tuple[Tensor, Any]:
        if sizes is None and in_sizes is None:
            self._part(x.shape[0], "First")
        joined = x.new_empty((x.size(0) if sizes is None else sum(sizes), *x.shape[1:]))
        coming, going = (None if s is None else list(s) for s in (sizes, in_sizes))
        return joined, dist.all_to_all_single(joined, x, coming, going, group=self.group, async_op=beside)
