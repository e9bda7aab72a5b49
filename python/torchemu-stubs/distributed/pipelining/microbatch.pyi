"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.pipelining.microbatch import TensorChunkSpec as TensorChunkSpec
from torchemu.frontends.numpy.distributed.pipelining.microbatch import merge_chunks as merge_chunks
from torchemu.frontends.numpy.distributed.pipelining.microbatch import split_args_kwargs_into_chunks as split_args_kwargs_into_chunks

