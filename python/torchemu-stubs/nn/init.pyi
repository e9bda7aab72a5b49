"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy._absent import lacks as lacks
from torchemu.frontends.numpy._grad_mode import no_grad as no_grad
from torchemu.frontends.numpy._tensor.core import Tensor as Tensor
from torchemu.frontends.numpy._tensor.generator import Generator as Generator
from torchemu.frontends.numpy.nn.init import calculate_gain as calculate_gain
from torchemu.frontends.numpy.nn.init import constant_ as constant_
from torchemu.frontends.numpy.nn.init import kaiming_normal_ as kaiming_normal_
from torchemu.frontends.numpy.nn.init import kaiming_uniform_ as kaiming_uniform_
from torchemu.frontends.numpy.nn.init import normal_ as normal_
from torchemu.frontends.numpy.nn.init import ones_ as ones_
from torchemu.frontends.numpy.nn.init import uniform_ as uniform_
from torchemu.frontends.numpy.nn.init import xavier_normal_ as xavier_normal_
from torchemu.frontends.numpy.nn.init import xavier_uniform_ as xavier_uniform_
from torchemu.frontends.numpy.nn.init import zeros_ as zeros_

