"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.attention import SDPBackend as SDPBackend
from torchemu.frontends.numpy.nn.attention import sdpa_kernel as sdpa_kernel

