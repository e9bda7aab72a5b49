"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.checkpoint.api import CheckpointException as CheckpointException
from torchemu.frontends.numpy.distributed.checkpoint.default_planner import DefaultLoadPlanner as DefaultLoadPlanner
from torchemu.frontends.numpy.distributed.checkpoint.default_planner import DefaultSavePlanner as DefaultSavePlanner
from torchemu.frontends.numpy.distributed.checkpoint.filesystem import FileSystemReader as FileSystemReader
from torchemu.frontends.numpy.distributed.checkpoint.filesystem import FileSystemWriter as FileSystemWriter
from torchemu.frontends.numpy.distributed.checkpoint.metadata import BytesStorageMetadata as BytesStorageMetadata
from torchemu.frontends.numpy.distributed.checkpoint.metadata import ChunkStorageMetadata as ChunkStorageMetadata
from torchemu.frontends.numpy.distributed.checkpoint.metadata import Metadata as Metadata
from torchemu.frontends.numpy.distributed.checkpoint.metadata import TensorStorageMetadata as TensorStorageMetadata
from torchemu.frontends.numpy.distributed.checkpoint.state_dict_loader import load as load
from torchemu.frontends.numpy.distributed.checkpoint.state_dict_saver import async_save as async_save
from torchemu.frontends.numpy.distributed.checkpoint.state_dict_saver import save as save

