"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.nn import functional as functional
from torchemu.frontends.numpy.distributed.nn.functional import _all_gather_base as _all_gather_base
from torchemu.frontends.numpy.distributed.nn.functional import all_gather as all_gather
from torchemu.frontends.numpy.distributed.nn.functional import all_reduce as all_reduce
from torchemu.frontends.numpy.distributed.nn.functional import all_to_all as all_to_all
from torchemu.frontends.numpy.distributed.nn.functional import all_to_all_single as all_to_all_single
from torchemu.frontends.numpy.distributed.nn.functional import broadcast as broadcast
from torchemu.frontends.numpy.distributed.nn.functional import gather as gather
from torchemu.frontends.numpy.distributed.nn.functional import reduce as reduce
from torchemu.frontends.numpy.distributed.nn.functional import reduce_scatter as reduce_scatter
from torchemu.frontends.numpy.distributed.nn.functional import scatter as scatter

