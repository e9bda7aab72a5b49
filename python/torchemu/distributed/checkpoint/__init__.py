"""torch.distributed.checkpoint: states that ranks save and load together, into a folder with a file for each."""

from torchemu._unsupported import unsupported_names
from torchemu.distributed.checkpoint.api import CheckpointException
from torchemu.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torchemu.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torchemu.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
)
from torchemu.distributed.checkpoint.state_dict_loader import load
from torchemu.distributed.checkpoint.state_dict_saver import async_save, save

__all__ = [
    "BytesStorageMetadata",
    "CheckpointException",
    "ChunkStorageMetadata",
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "FileSystemReader",
    "FileSystemWriter",
    "Metadata",
    "TensorStorageMetadata",
    "async_save",
    "load",
    "save",
]

__getattr__ = unsupported_names(
    "torch.distributed.checkpoint",
    "HuggingFaceStorageReader HuggingFaceStorageWriter LoadPlan LoadPlanner QuantizedHuggingFaceStorageReader ReadItem "
    "SavePlan SavePlanner StorageReader StorageWriter WriteItem load_sharded_optimizer_state_dict load_state_dict "
    "save_state_dict",
    "use save and load, with a folder",
)
