"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.parallel import distributed as distributed
from torchemu.frontends.numpy.nn.parallel.data_parallel import DataParallel as DataParallel
from torchemu.frontends.numpy.nn.parallel.data_parallel import data_parallel as data_parallel
from torchemu.frontends.numpy.nn.parallel.distributed import DistributedDataParallel as DistributedDataParallel
from torchemu.frontends.numpy.nn.parallel.parallel_apply import parallel_apply as parallel_apply
from torchemu.frontends.numpy.nn.parallel.replicate import replicate as replicate
from torchemu.frontends.numpy.nn.parallel.scatter_gather import gather as gather
from torchemu.frontends.numpy.nn.parallel.scatter_gather import scatter as scatter

