"""torch.nn.parallel: a module on every rank, each with a part of the data."""

from typing import Any

from torchemu._unsupported import unsupported_class, unsupported_names
from torchemu.nn._missing import INSTEAD, PARALLEL
from torchemu.nn.parallel import distributed
from torchemu.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "distributed"]

DataParallel: Any = unsupported_class(
    "torch.nn.parallel.DataParallel", "a rank has one device; use DistributedDataParallel"
)

__getattr__ = unsupported_names("torch.nn.parallel", PARALLEL, INSTEAD)
