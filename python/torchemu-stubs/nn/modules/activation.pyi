"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.activation import GELU as GELU
from torchemu.frontends.numpy.nn.modules.activation import ReLU as ReLU
from torchemu.frontends.numpy.nn.modules.activation import Tanh as Tanh

