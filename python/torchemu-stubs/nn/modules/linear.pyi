"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.linear import Bilinear as Bilinear
from torchemu.frontends.numpy.nn.modules.linear import Flatten as Flatten
from torchemu.frontends.numpy.nn.modules.linear import Identity as Identity
from torchemu.frontends.numpy.nn.modules.linear import Linear as Linear
from torchemu.frontends.numpy.nn.modules.linear import Unflatten as Unflatten

