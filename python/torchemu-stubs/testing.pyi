"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu import dtypes as dtypes
from torchemu.frontends.numpy._absent import lacks as lacks
from torchemu.frontends.numpy._tensor.comparing import close as close
from torchemu.frontends.numpy._tensor.conversion import converted as converted
from torchemu.frontends.numpy._tensor.conversion import quietly as quietly
from torchemu.frontends.numpy._tensor.from_data import as_tensor as as_tensor
from torchemu.frontends.numpy.testing import assert_close as assert_close

