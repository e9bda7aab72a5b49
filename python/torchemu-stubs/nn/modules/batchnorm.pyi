"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.batchnorm import BatchNorm1d as BatchNorm1d
from torchemu.frontends.numpy.nn.modules.batchnorm import BatchNorm2d as BatchNorm2d
from torchemu.frontends.numpy.nn.modules.batchnorm import BatchNorm3d as BatchNorm3d
from torchemu.frontends.numpy.nn.modules.batchnorm import InstanceNorm1d as InstanceNorm1d
from torchemu.frontends.numpy.nn.modules.batchnorm import InstanceNorm2d as InstanceNorm2d
from torchemu.frontends.numpy.nn.modules.batchnorm import InstanceNorm3d as InstanceNorm3d
from torchemu.frontends.numpy.nn.modules.batchnorm import SyncBatchNorm as SyncBatchNorm

