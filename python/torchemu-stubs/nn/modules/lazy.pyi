"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.lazy import LazyBatchNorm1d as LazyBatchNorm1d
from torchemu.frontends.numpy.nn.modules.lazy import LazyBatchNorm2d as LazyBatchNorm2d
from torchemu.frontends.numpy.nn.modules.lazy import LazyBatchNorm3d as LazyBatchNorm3d
from torchemu.frontends.numpy.nn.modules.lazy import LazyConv1d as LazyConv1d
from torchemu.frontends.numpy.nn.modules.lazy import LazyConv2d as LazyConv2d
from torchemu.frontends.numpy.nn.modules.lazy import LazyConv3d as LazyConv3d
from torchemu.frontends.numpy.nn.modules.lazy import LazyConvTranspose1d as LazyConvTranspose1d
from torchemu.frontends.numpy.nn.modules.lazy import LazyConvTranspose2d as LazyConvTranspose2d
from torchemu.frontends.numpy.nn.modules.lazy import LazyConvTranspose3d as LazyConvTranspose3d
from torchemu.frontends.numpy.nn.modules.lazy import LazyInstanceNorm1d as LazyInstanceNorm1d
from torchemu.frontends.numpy.nn.modules.lazy import LazyInstanceNorm2d as LazyInstanceNorm2d
from torchemu.frontends.numpy.nn.modules.lazy import LazyInstanceNorm3d as LazyInstanceNorm3d
from torchemu.frontends.numpy.nn.modules.lazy import LazyLinear as LazyLinear

