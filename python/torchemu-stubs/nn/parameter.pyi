"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.parameter import Buffer as Buffer
from torchemu.frontends.numpy.nn.parameter import Parameter as Parameter
from torchemu.frontends.numpy.nn.parameter import UninitializedBuffer as UninitializedBuffer
from torchemu.frontends.numpy.nn.parameter import UninitializedParameter as UninitializedParameter

