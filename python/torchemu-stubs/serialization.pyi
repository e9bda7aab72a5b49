"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.serialization import load as load
from torchemu.frontends.numpy.serialization import save as save

