"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy._tensor.core import Tensor as Tensor
from torchemu.frontends.numpy.distributed import _functional_collectives as functional
from torchemu.frontends.numpy.distributed import distributed_c10d as c10d
from torchemu.frontends.numpy.distributed._symmetric_memory import _ops as symmetric
from torchemu.frontends.numpy.ops import symm_mem as symm_mem

