"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.backends.mps import is_available as is_available
from torchemu.frontends.numpy.backends.mps import is_available as is_built

