"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.cuda.nvtx import mark as mark
from torchemu.frontends.numpy.cuda.nvtx import range as range
from torchemu.frontends.numpy.cuda.nvtx import range_end as range_end
from torchemu.frontends.numpy.cuda.nvtx import range_pop as range_pop
from torchemu.frontends.numpy.cuda.nvtx import range_push as range_push
from torchemu.frontends.numpy.cuda.nvtx import range_start as range_start

