"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.rpc import is_available as is_available
from torchemu.unsupported import unsupported_attributes as unsupported_attributes

