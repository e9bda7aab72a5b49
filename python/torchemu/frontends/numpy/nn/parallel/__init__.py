"""torch.nn.parallel: a module on every rank, each with a part of the data; or on several devices of one rank."""

from torchemu.frontends.numpy.nn._missing import PARALLEL
from torchemu.frontends.numpy.nn.parallel import distributed
from torchemu.frontends.numpy.nn.parallel.data_parallel import DataParallel, data_parallel
from torchemu.frontends.numpy.nn.parallel.distributed import DistributedDataParallel
from torchemu.frontends.numpy.nn.parallel.parallel_apply import parallel_apply
from torchemu.frontends.numpy.nn.parallel.replicate import replicate
from torchemu.frontends.numpy.nn.parallel.scatter_gather import gather, scatter
from torchemu.unsupported import unsupported_names

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "distributed",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]

__getattr__ = unsupported_names(
    "torch.nn.parallel", PARALLEL, "use DistributedDataParallel, which takes modules on the host"
)
