"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy._absent import lacks as lacks
from torchemu.frontends.numpy.distributed._symmetric_memory import _ops as symmetric
from torchemu.frontends.numpy.ops import symm_mem as symm_mem

