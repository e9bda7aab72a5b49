"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.parallel.data_parallel import DataParallel as DataParallel
from torchemu.frontends.numpy.nn.parallel.data_parallel import data_parallel as data_parallel

