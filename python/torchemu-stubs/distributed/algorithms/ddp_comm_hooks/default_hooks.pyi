"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook as allreduce_hook
from torchemu.frontends.numpy.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook as bf16_compress_hook
from torchemu.frontends.numpy.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_wrapper as bf16_compress_wrapper
from torchemu.frontends.numpy.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook as fp16_compress_hook
from torchemu.frontends.numpy.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_wrapper as fp16_compress_wrapper

