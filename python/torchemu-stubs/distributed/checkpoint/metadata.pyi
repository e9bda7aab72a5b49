"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.checkpoint.metadata import BytesStorageMetadata as BytesStorageMetadata
from torchemu.frontends.numpy.distributed.checkpoint.metadata import ChunkStorageMetadata as ChunkStorageMetadata
from torchemu.frontends.numpy.distributed.checkpoint.metadata import Metadata as Metadata
from torchemu.frontends.numpy.distributed.checkpoint.metadata import TensorProperties as TensorProperties
from torchemu.frontends.numpy.distributed.checkpoint.metadata import TensorStorageMetadata as TensorStorageMetadata

