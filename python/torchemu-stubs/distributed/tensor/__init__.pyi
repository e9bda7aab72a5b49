"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.tensor import parallel as parallel
from torchemu.unsupported import unsupported_names as unsupported_names

