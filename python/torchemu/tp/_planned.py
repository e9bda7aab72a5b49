"""Plans as functions that gradients go through."""

from __future__ import annotations

from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.autograd import Function
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.frontends.numpy.plan_operations import Operations, Sizes
from torchemu.tp.plans import Plans, execute, plans


def dtype_name(dtype: Any) -> str:
    """Returns the name of a dtype as plans have it."""
    return str(dtype).partition(".")[2]


class Planned(Function):
    """A pair of plans, as a function of tensors: of Plans, a group, and the forward plan's inputs."""

    @staticmethod
    def forward(ctx: Any, both: Plans, group: ProcessGroup, *inputs: Tensor) -> Tensor:
        outputs, saved = execute(both.forward, Operations(group), inputs)
        ctx.save_for_backward(*saved)
        ctx.plans, ctx.group = both, group
        return outputs["output"]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        assert ctx.plans.backward is not None, "output_split_sizes need tensor_parallel_output_grad"
        grads, _ = execute(ctx.plans.backward, Operations(ctx.group), (grad, *ctx.saved_tensors))
        return None, None, *[grads.get(name) for name in ctx.plans.forward.inputs]


class _ReduceInPlace(Function):
    """The sum of the ranks' tensors, in place of a tensor that nobody else has; each gets the whole gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, operations: Operations) -> Tensor:
        ctx.mark_dirty(x)
        return operations.all_reduce(x, "sum", False)[0]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad, None


class Recorded(Operations):
    """Operations that autograd records one by one, and goes back through without a backward plan: as it lets go of each
    gradient when it has the next, this takes less memory than one Function for all."""

    def all_reduce(self, x: Tensor, reduce: str, beside: bool) -> tuple[Tensor, Any]:
        return _ReduceInPlace.apply(x, Operations(self.group)), None

    def reduce_scatter(self, x: Tensor, beside: bool, sizes: Sizes = None) -> tuple[Tensor, Any]:
        both = plans("reduce_scatter_to_sequence_parallel_region", ranks=self.ranks)
        return Planned.apply(both, self.group, x), None
