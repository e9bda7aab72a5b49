"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.margins import CTCLoss as CTCLoss
from torchemu.frontends.numpy.nn.modules.margins import GaussianNLLLoss as GaussianNLLLoss
from torchemu.frontends.numpy.nn.modules.margins import MultiLabelMarginLoss as MultiLabelMarginLoss
from torchemu.frontends.numpy.nn.modules.margins import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from torchemu.frontends.numpy.nn.modules.margins import MultiMarginLoss as MultiMarginLoss
from torchemu.frontends.numpy.nn.modules.margins import NLLLoss2d as NLLLoss2d
from torchemu.frontends.numpy.nn.modules.margins import PoissonNLLLoss as PoissonNLLLoss
from torchemu.frontends.numpy.nn.modules.margins import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss

