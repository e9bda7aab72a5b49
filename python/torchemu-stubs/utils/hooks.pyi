"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.utils.hooks import RemovableHandle as RemovableHandle
from torchemu.frontends.numpy.utils.hooks import registered as registered

