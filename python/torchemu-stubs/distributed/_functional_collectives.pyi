"""Names for type checkers; written by python/build_backend/stubs.py."""

from typing import Any

from torchemu.c10d.groups import find_by_name as find_by_name
from torchemu.c10d.reduce_op import reduction_of as reduction_of
from torchemu.c10d.work import Work as Work
from torchemu.frontends import numpy as torch
from torchemu.frontends.numpy._tensor.core import Tensor as Tensor
from torchemu.frontends.numpy.distributed import distributed_c10d as c10d
from torchemu.frontends.numpy.distributed._async_tensor import AsyncCollectiveTensor as AsyncCollectiveTensor
from torchemu.frontends.numpy.distributed._functional_collectives import all_gather_into_tensor_coalesced as all_gather_into_tensor_coalesced
from torchemu.frontends.numpy.distributed._functional_collectives import all_gather_into_tensor_coalesced as all_gather_single_coalesced
from torchemu.frontends.numpy.distributed._functional_collectives import all_gather_tensor as all_gather_single
from torchemu.frontends.numpy.distributed._functional_collectives import all_gather_tensor as all_gather_tensor
from torchemu.frontends.numpy.distributed._functional_collectives import all_reduce as all_reduce
from torchemu.frontends.numpy.distributed._functional_collectives import all_reduce_coalesced as all_reduce_coalesced
from torchemu.frontends.numpy.distributed._functional_collectives import all_to_all_single as all_to_all_single
from torchemu.frontends.numpy.distributed._functional_collectives import broadcast as broadcast
from torchemu.frontends.numpy.distributed._functional_collectives import permute_tensor as permute_tensor
from torchemu.frontends.numpy.distributed._functional_collectives import reduce_scatter_tensor as reduce_scatter_single
from torchemu.frontends.numpy.distributed._functional_collectives import reduce_scatter_tensor as reduce_scatter_tensor
from torchemu.frontends.numpy.distributed._functional_collectives import reduce_scatter_tensor_coalesced as reduce_scatter_single_coalesced
from torchemu.frontends.numpy.distributed._functional_collectives import reduce_scatter_tensor_coalesced as reduce_scatter_tensor_coalesced
from torchemu.frontends.numpy.distributed._functional_collectives import wait_tensor as wait_tensor
from torchemu.frontends.numpy.distributed._functional_collectives import wait_tensors as wait_tensors

groups: Any
