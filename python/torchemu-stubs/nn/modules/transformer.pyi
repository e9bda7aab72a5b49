"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.transformer import Transformer as Transformer
from torchemu.frontends.numpy.nn.modules.transformer import TransformerDecoder as TransformerDecoder
from torchemu.frontends.numpy.nn.modules.transformer import TransformerDecoderLayer as TransformerDecoderLayer

