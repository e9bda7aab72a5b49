"""torch.distributed.checkpoint.metadata: what is in a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torchemu.dtypes import dtype
from torchemu.frontends.numpy._shape import Size

__all__ = ["BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "TensorProperties", "TensorStorageMetadata"]


@dataclass
class ChunkStorageMetadata:
    """A part of a tensor: where it begins, and its shape."""

    offsets: Size
    sizes: Size


@dataclass
class TensorProperties:
    """What a tensor is, besides its shape."""

    dtype: dtype


@dataclass
class TensorStorageMetadata:
    """A tensor: its properties, its shape, and the parts that it is saved in."""

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """Something else, which is pickled."""


@dataclass
class Metadata:
    """What is in a checkpoint.

    Args:
        state_dict_metadata: by the paths of what is saved, as "model.0.weight".
        planner_data: the keys on those paths.
        storage_data: where each is: a file, an offset and a length in bytes.
    """

    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
    planner_data: Any = None
    storage_data: Any = field(default=None)
