"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.normalization import GroupNorm as GroupNorm
from torchemu.frontends.numpy.nn.modules.normalization import LayerNorm as LayerNorm
from torchemu.frontends.numpy.nn.modules.normalization import LocalResponseNorm as LocalResponseNorm
from torchemu.frontends.numpy.nn.modules.normalization import RMSNorm as RMSNorm

