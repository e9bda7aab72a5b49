"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.parallel.scatter_gather import gather as gather
from torchemu.frontends.numpy.nn.parallel.scatter_gather import scatter as scatter
from torchemu.frontends.numpy.nn.parallel.scatter_gather import scatter_kwargs as scatter_kwargs

