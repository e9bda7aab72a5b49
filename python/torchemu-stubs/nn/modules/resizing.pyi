"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.resizing import ChannelShuffle as ChannelShuffle
from torchemu.frontends.numpy.nn.modules.resizing import Fold as Fold
from torchemu.frontends.numpy.nn.modules.resizing import PixelShuffle as PixelShuffle
from torchemu.frontends.numpy.nn.modules.resizing import PixelUnshuffle as PixelUnshuffle
from torchemu.frontends.numpy.nn.modules.resizing import Unfold as Unfold
from torchemu.frontends.numpy.nn.modules.resizing import Upsample as Upsample
from torchemu.frontends.numpy.nn.modules.resizing import UpsamplingBilinear2d as UpsamplingBilinear2d
from torchemu.frontends.numpy.nn.modules.resizing import UpsamplingNearest2d as UpsamplingNearest2d

