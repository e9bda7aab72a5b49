"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.activation import GELU as GELU
from torchemu.frontends.numpy.nn.modules.activation import LogSoftmax as LogSoftmax
from torchemu.frontends.numpy.nn.modules.activation import ReLU as ReLU
from torchemu.frontends.numpy.nn.modules.activation import SiLU as SiLU
from torchemu.frontends.numpy.nn.modules.activation import Sigmoid as Sigmoid
from torchemu.frontends.numpy.nn.modules.activation import Softmax as Softmax
from torchemu.frontends.numpy.nn.modules.activation import Softplus as Softplus
from torchemu.frontends.numpy.nn.modules.activation import Tanh as Tanh

