"""torch.distributed.pipelining.microbatch: a batch in parts, and results of parts together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.joining import cat, stack
from torchemu.frontends.numpy.utils import _pytree as pytree

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]


class TensorChunkSpec:
    """Along which dimension a tensor is cut.

    Args:
        split_dim: the dimension.
    """

    def __init__(self, split_dim: int) -> None:
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"{type(self).__module__}.{type(self).__name__}({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: tuple[int, ...]) -> tuple[TensorChunkSpec, ...]:
        """One for each positional argument."""
        return tuple(TensorChunkSpec(dim) for dim in chunk_dims)

    @staticmethod
    def from_dict(chunk_dims: dict[str, int]) -> dict[str, TensorChunkSpec]:
        """One for each keyword argument."""
        return {name: TensorChunkSpec(dim) for name, dim in chunk_dims.items()}


def cut(t: Tensor, count: int, dim: int = 0) -> list[Tensor]:
    """The parts of a tensor, as Tensor.tensor_split's.

    Raises:
        ValueError: some would be empty.
    """
    rows = t.shape[dim]
    if rows < count:
        raise ValueError(f"Expecting {count} arg_mbs but got {rows}")
    return list(t.tensor_split(count, dim))


def _parts(value: Any, count: int, spec: TensorChunkSpec | None) -> list[Any]:
    """The parts of a value, also of tensors in tuples, lists and dicts; of what is no tensor itself, for each part."""
    leaves, tree = pytree.tree_flatten(value)
    dim = spec.split_dim if spec is not None else 0
    columns = [cut(each, count, dim) if isinstance(each, Tensor) else [each] * count for each in leaves]
    return [tree.unflatten([column[i] for column in columns]) for i in range(count)]


def split_args_kwargs_into_chunks(
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    chunks: int,
    args_chunk_spec: tuple[TensorChunkSpec, ...] | None = None,
    kwargs_chunk_spec: dict[str, TensorChunkSpec] | None = None,
) -> tuple[list[tuple[Any, ...]], list[dict[str, Any]]]:
    """The arguments of each microbatch.

    Args:
        args, kwargs: of the whole batch.
        chunks: how many microbatches.
        args_chunk_spec, kwargs_chunk_spec: along which dimensions; None: the first.

    Raises:
        ValueError: there are not as many specs as arguments, or fewer rows than microbatches.
    """
    specs: Sequence[Any] = args_chunk_spec if args_chunk_spec is not None else [None] * len(args)
    if len(specs) != len(args):
        raise ValueError(f"args_chunk_spec has {len(specs)} entries for {len(args)} arguments")
    columns = [_parts(value, chunks, spec) for value, spec in zip(args, specs, strict=True)]
    named = {name: _parts(value, chunks, (kwargs_chunk_spec or {}).get(name)) for name, value in (kwargs or {}).items()}
    positional = [tuple(column[i] for column in columns) for i in range(chunks)]
    return positional, [{name: column[i] for name, column in named.items()} for i in range(chunks)]


def merge_chunks(chunks: list[Any], chunk_spec: Any = None) -> Any:
    """What microbatches have returned as what the batch would have.

    Args:
        chunk_spec: a TensorChunkSpec for all tensors, or a tuple, list or dict with one for each; None: along the first
            dimension.

    Raises:
        ValueError: there are not as many specs as tensors.
    """
    flat = [pytree.tree_flatten(each) for each in chunks]
    columns = list(zip(*(leaves for leaves, _ in flat), strict=True))
    specs = [chunk_spec] * len(columns) if chunk_spec is None else pytree.tree_leaves(chunk_spec)
    specs = specs * len(columns) if isinstance(chunk_spec, TensorChunkSpec) else specs
    if len(specs) != len(columns):
        raise ValueError(f"Chunk spec {chunk_spec} has {len(specs)} entries for {len(columns)} outputs")
    return flat[0][1].unflatten([_joined(list(c), spec) for c, spec in zip(columns, specs, strict=True)])


def _joined(parts: list[Any], spec: TensorChunkSpec | None) -> Any:
    if not isinstance(parts[0], Tensor):
        return parts[0]
    return cat(parts, spec.split_dim if spec is not None else 0) if parts[0].dim() else stack(parts)
