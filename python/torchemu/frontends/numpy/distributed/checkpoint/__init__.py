"""torch.distributed.checkpoint: states that ranks save and load together, into a folder with a file for each."""

from torchemu.frontends.numpy.distributed.checkpoint.api import CheckpointException
from torchemu.frontends.numpy.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torchemu.frontends.numpy.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torchemu.frontends.numpy.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
)
from torchemu.frontends.numpy.distributed.checkpoint.state_dict_loader import load
from torchemu.frontends.numpy.distributed.checkpoint.state_dict_saver import async_save, save
from torchemu.unsupported import unsupported_names

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
