"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.convolution import Conv1d as Conv1d
from torchemu.frontends.numpy.nn.modules.convolution import Conv2d as Conv2d
from torchemu.frontends.numpy.nn.modules.convolution import Conv3d as Conv3d
from torchemu.frontends.numpy.nn.modules.convolution import ConvTranspose1d as ConvTranspose1d
from torchemu.frontends.numpy.nn.modules.convolution import ConvTranspose2d as ConvTranspose2d
from torchemu.frontends.numpy.nn.modules.convolution import ConvTranspose3d as ConvTranspose3d

