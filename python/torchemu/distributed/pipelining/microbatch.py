"""torch.distributed.pipelining.microbatch: a batch in parts, and results of parts together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchemu._tensor.core import Tensor
from torchemu._tensor.joining import cat, stack

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


def _parts(value: Any, count: int, spec: TensorChunkSpec | None) -> list[Any]:
    """The parts of a value: of tensors, also in tuples, lists and dicts, as Tensor.tensor_split's; else itself."""
    if isinstance(value, Tensor):
        return list(value.tensor_split(count, spec.split_dim if spec is not None else 0))
    if isinstance(value, dict):
        columns = {key: _parts(each, count, spec) for key, each in value.items()}
        return [{key: column[i] for key, column in columns.items()} for i in range(count)]
    if isinstance(value, list | tuple):
        rows = [_parts(each, count, spec) for each in value]
        return [type(value)([row[i] for row in rows]) for i in range(count)]
    return [value] * count


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
        ValueError: there are not as many specs as arguments.
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
        chunk_spec: a TensorChunkSpec for all tensors; None: along the first dimension.
    """
    first = chunks[0]
    if isinstance(first, Tensor):
        dim = chunk_spec.split_dim if isinstance(chunk_spec, TensorChunkSpec) else 0
        return cat(chunks, dim) if first.dim() else stack(chunks)
    if isinstance(first, dict):
        return {key: merge_chunks([each[key] for each in chunks], chunk_spec) for key in first}
    if isinstance(first, list | tuple):
        return type(first)([merge_chunks(list(each), chunk_spec) for each in zip(*chunks, strict=True)])
    return first
