"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.attention import MultiheadAttention as MultiheadAttention
from torchemu.frontends.numpy.nn.modules.attention import TransformerEncoder as TransformerEncoder
from torchemu.frontends.numpy.nn.modules.attention import TransformerEncoderLayer as TransformerEncoderLayer

