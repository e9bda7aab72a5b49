"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.backends.cuda import enable_flash_sdp as enable_cudnn_sdp
from torchemu.frontends.numpy.backends.cuda import enable_flash_sdp as enable_flash_sdp
from torchemu.frontends.numpy.backends.cuda import enable_flash_sdp as enable_math_sdp
from torchemu.frontends.numpy.backends.cuda import enable_flash_sdp as enable_mem_efficient_sdp
from torchemu.frontends.numpy.backends.cuda import flash_sdp_enabled as cudnn_sdp_enabled
from torchemu.frontends.numpy.backends.cuda import flash_sdp_enabled as flash_sdp_enabled
from torchemu.frontends.numpy.backends.cuda import flash_sdp_enabled as mem_efficient_sdp_enabled
from torchemu.frontends.numpy.backends.cuda import is_built as is_built
from torchemu.frontends.numpy.backends.cuda import math_sdp_enabled as math_sdp_enabled
from torchemu.frontends.numpy.backends.cuda import matmul as matmul
from torchemu.frontends.numpy.backends.cuda import sdp_kernel as sdp_kernel

