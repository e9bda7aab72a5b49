"""Communication between the ranks of a tensor parallel group, each with its conjugate: by which gradients come back.

Operands stay as they are. In a group of one rank tensors pass through. ``group`` None is the tensor parallel group. A
dimension that cannot be divided among the ranks is an AssertionError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchemu.frontends.numpy._plans import Plans, execute, plans
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.autograd import Function
from torchemu.frontends.numpy.distributed import ProcessGroup
from torchemu.frontends.numpy.plan_operations import Operations
from torchemu.tp.utils import get_tensor_model_parallel_group_if_none

__all__ = [
    "all_gather_last_dim_from_tensor_parallel_region",
    "all_to_all",
    "all_to_all_hp2sp",
    "all_to_all_sp2hp",
    "copy_to_tensor_model_parallel_region",
    "gather_from_sequence_parallel_region",
    "gather_from_tensor_model_parallel_region",
    "reduce_from_tensor_model_parallel_region",
    "reduce_scatter_last_dim_to_tensor_parallel_region",
    "reduce_scatter_to_sequence_parallel_region",
    "scatter_to_sequence_parallel_region",
    "scatter_to_tensor_model_parallel_region",
]

Sizes = Sequence[int] | None


class Planned(Function):
    """A pair of plans, as a function of tensors: of Plans, a group, and the forward plan's inputs."""

    takes_all = True  # a plan says what is no longer needed

    @staticmethod
    def forward(ctx: Any, both: Plans, group: ProcessGroup, *inputs: Tensor) -> Tensor:
        outputs, saved = execute(both.forward, Operations(group), inputs)
        ctx.save_for_backward(*saved)
        ctx.plans, ctx.group = both, group
        return outputs["output"]

    @staticmethod
    def backward(ctx: Any, inputs: list[Tensor]) -> Any:
        assert ctx.plans.backward is not None, "output_split_sizes need tensor_parallel_output_grad"
        found, _ = execute(ctx.plans.backward, Operations(ctx.group), inputs)
        return None, None, *[found.get(name) for name in ctx.plans.forward.inputs]


def planned(name: str, group: ProcessGroup | None, *inputs: Tensor, **options: Any) -> Tensor:
    """Runs through the plans of what Megatron calls by a name, now and when gradients come back.

    Args:
        name: as torchemu.frontends.numpy._plans.plans has it.
        group: the ranks; None: the tensor model parallel group.
        inputs: of the forward plan.
        options: decide the plans; lists of sizes are tuples in them.
    """
    group = get_tensor_model_parallel_group_if_none(group)
    return Planned.apply(plans(name, ranks=group.size(), **options), group, *inputs)


class Mapping:
    """A function of a tensor and a group, None for the tensor parallel one, whose plans have its name.

    Args:
        name: Megatron's.
        about: what it returns.
    """

    def __init__(self, name: str, about: str) -> None:
        self.__name__, self.__doc__ = name, about

    def __call__(self, input_: Tensor, group: ProcessGroup | None = None) -> Tensor:
        return planned(self.__name__, group, input_)


copy_to_tensor_model_parallel_region = Mapping(
    "copy_to_tensor_model_parallel_region", "Returns the tensor, from which all ranks start; gradients are added up."
)
reduce_from_tensor_model_parallel_region = Mapping(
    "reduce_from_tensor_model_parallel_region", "Returns the sum of the ranks' tensors; each gets the whole gradient."
)
scatter_to_tensor_model_parallel_region = Mapping(
    "scatter_to_tensor_model_parallel_region", "Returns the rank's part of the last dimension; gradients are joined."
)
gather_from_tensor_model_parallel_region = Mapping(
    "gather_from_tensor_model_parallel_region",
    "Returns the ranks' tensors joined along the last dimension; each gets its part of the gradient.",
)
scatter_to_sequence_parallel_region = Mapping(
    "scatter_to_sequence_parallel_region", "Returns the rank's part of the first dimension; gradients are joined."
)
all_gather_last_dim_from_tensor_parallel_region = Mapping(
    "all_gather_last_dim_from_tensor_parallel_region",
    "Returns the ranks' tensors joined along the last dimension; gradients are added up, and each gets its part.",
)
reduce_scatter_last_dim_to_tensor_parallel_region = Mapping(
    "reduce_scatter_last_dim_to_tensor_parallel_region",
    "Returns the rank's part, along the last dimension, of the sum of the ranks' tensors; gradients are joined.",
)


def _listed(sizes: Sizes) -> tuple[int, ...] | None:
    return None if sizes is None else tuple(sizes)


def gather_from_sequence_parallel_region(
    input_: Tensor,
    tensor_parallel_output_grad: bool = True,
    group: ProcessGroup | None = None,
    output_split_sizes: Sizes = None,
    use_global_buffer: bool = False,
) -> Tensor:
    """Returns the ranks' tensors joined along the first dimension.

    Args:
        input_: the rank's.
        tensor_parallel_output_grad: what follows differs from rank to rank, so gradients are added up and each rank
            gets its part; else all ranks do the same, and they are not added up.
        group: the ranks.
        output_split_sizes: their first dimensions, where these differ; they need tensor_parallel_output_grad in the
            backward pass.
        use_global_buffer: means nothing here.
    """
    how = {"tensor_parallel_output_grad": bool(tensor_parallel_output_grad), "sizes": _listed(output_split_sizes)}
    return planned("gather_from_sequence_parallel_region", group, input_, **how)


def reduce_scatter_to_sequence_parallel_region(
    input_: Tensor,
    group: ProcessGroup | None = None,
    input_split_sizes: Sizes = None,
    use_global_buffer: bool = False,
) -> Tensor:
    """Returns the rank's part, along the first dimension, of the sum of the ranks' tensors; gradients are joined.

    Args:
        input_: the rank's.
        group: the ranks.
        input_split_sizes: the sizes of the parts, where they differ.
        use_global_buffer: means nothing here.
    """
    sizes = _listed(input_split_sizes)
    return planned("reduce_scatter_to_sequence_parallel_region", group, input_, sizes=sizes)


def all_to_all(
    group: ProcessGroup | None, input_: Tensor, output_split_sizes_: Sizes = None, input_split_sizes: Sizes = None
) -> Tensor:
    """Returns what each rank has for this one, joined along the first dimension; gradients go the way back.

    Args:
        group: the ranks.
        input_: what this rank has for each, one after the other.
        output_split_sizes_, input_split_sizes: sizes of what comes from each rank, and of what goes to each; None:
            equal ones.
    """
    assert group is not None, "group should not be None"
    return planned("all_to_all", group, input_, sizes=_listed(output_split_sizes_), in_sizes=_listed(input_split_sizes))


def all_to_all_sp2hp(input_: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """Returns, for the rank's part of the tokens, […, h], its part of what each token has, [tokens, h/n]."""
    return planned("all_to_all_sp2hp", group, input_.reshape(-1, input_.shape[-1]))


def all_to_all_hp2sp(input_: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """Returns, for the rank's part of what each token has, […, h/n], its part of the tokens, [tokens/n, h]."""
    return planned("all_to_all_hp2sp", group, input_.reshape(-1, input_.shape[-1]))
