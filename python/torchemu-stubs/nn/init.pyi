"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy._grad_mode import no_grad as no_grad
from torchemu.frontends.numpy._tensor.core import Tensor as Tensor
from torchemu.frontends.numpy._tensor.creation import eye as eye
from torchemu.frontends.numpy._tensor.from_data import from_numpy as from_numpy
from torchemu.frontends.numpy._tensor.generator import Generator as Generator
from torchemu.frontends.numpy.nn.init import calculate_gain as calculate_gain
from torchemu.frontends.numpy.nn.init import constant_ as constant_
from torchemu.frontends.numpy.nn.init import eye_ as eye_
from torchemu.frontends.numpy.nn.init import kaiming_normal_ as kaiming_normal_
from torchemu.frontends.numpy.nn.init import kaiming_uniform_ as kaiming_uniform_
from torchemu.frontends.numpy.nn.init import normal_ as normal_
from torchemu.frontends.numpy.nn.init import ones_ as ones_
from torchemu.frontends.numpy.nn.init import orthogonal_ as orthogonal_
from torchemu.frontends.numpy.nn.init import trunc_normal_ as trunc_normal_
from torchemu.frontends.numpy.nn.init import uniform_ as uniform_
from torchemu.frontends.numpy.nn.init import xavier_normal_ as xavier_normal_
from torchemu.frontends.numpy.nn.init import xavier_uniform_ as xavier_uniform_
from torchemu.frontends.numpy.nn.init import zeros_ as zeros_
from torchemu.unsupported import unsupported_names as unsupported_names

INITIAL_VALUES: str
INSTEAD: str
