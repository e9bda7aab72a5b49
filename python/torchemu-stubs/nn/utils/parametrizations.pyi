"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.utils.parametrizations import orthogonal as orthogonal
from torchemu.frontends.numpy.nn.utils.parametrizations import spectral_norm as spectral_norm
from torchemu.frontends.numpy.nn.utils.parametrizations import weight_norm as weight_norm

