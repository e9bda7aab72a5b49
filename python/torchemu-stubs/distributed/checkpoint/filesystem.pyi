"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.checkpoint.filesystem import FileSystemReader as FileSystemReader
from torchemu.frontends.numpy.distributed.checkpoint.filesystem import FileSystemWriter as FileSystemWriter

