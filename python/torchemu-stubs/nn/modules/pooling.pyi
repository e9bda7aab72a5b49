"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from torchemu.frontends.numpy.nn.modules.pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from torchemu.frontends.numpy.nn.modules.pooling import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from torchemu.frontends.numpy.nn.modules.pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from torchemu.frontends.numpy.nn.modules.pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from torchemu.frontends.numpy.nn.modules.pooling import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from torchemu.frontends.numpy.nn.modules.pooling import AvgPool1d as AvgPool1d
from torchemu.frontends.numpy.nn.modules.pooling import AvgPool2d as AvgPool2d
from torchemu.frontends.numpy.nn.modules.pooling import AvgPool3d as AvgPool3d
from torchemu.frontends.numpy.nn.modules.pooling import LPPool1d as LPPool1d
from torchemu.frontends.numpy.nn.modules.pooling import LPPool2d as LPPool2d
from torchemu.frontends.numpy.nn.modules.pooling import LPPool3d as LPPool3d
from torchemu.frontends.numpy.nn.modules.pooling import MaxPool1d as MaxPool1d
from torchemu.frontends.numpy.nn.modules.pooling import MaxPool2d as MaxPool2d
from torchemu.frontends.numpy.nn.modules.pooling import MaxPool3d as MaxPool3d
from torchemu.frontends.numpy.nn.modules.pooling import MaxUnpool1d as MaxUnpool1d
from torchemu.frontends.numpy.nn.modules.pooling import MaxUnpool2d as MaxUnpool2d
from torchemu.frontends.numpy.nn.modules.pooling import MaxUnpool3d as MaxUnpool3d

