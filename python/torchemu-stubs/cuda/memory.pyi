"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy import ahbm as ahbm
from torchemu.frontends.numpy.cuda.memory import empty_cache as empty_cache
from torchemu.frontends.numpy.cuda.memory import get_allocator_backend as get_allocator_backend
from torchemu.frontends.numpy.cuda.memory import get_per_process_memory_fraction as get_per_process_memory_fraction
from torchemu.frontends.numpy.cuda.memory import max_memory_allocated as max_memory_allocated
from torchemu.frontends.numpy.cuda.memory import max_memory_allocated as max_memory_cached
from torchemu.frontends.numpy.cuda.memory import max_memory_allocated as max_memory_reserved
from torchemu.frontends.numpy.cuda.memory import mem_get_info as mem_get_info
from torchemu.frontends.numpy.cuda.memory import memory_allocated as memory_allocated
from torchemu.frontends.numpy.cuda.memory import memory_allocated as memory_cached
from torchemu.frontends.numpy.cuda.memory import memory_allocated as memory_reserved
from torchemu.frontends.numpy.cuda.memory import memory_stats as memory_stats
from torchemu.frontends.numpy.cuda.memory import memory_summary as memory_summary
from torchemu.frontends.numpy.cuda.memory import reset_accumulated_memory_stats as reset_accumulated_memory_stats
from torchemu.frontends.numpy.cuda.memory import reset_peak_memory_stats as reset_max_memory_allocated
from torchemu.frontends.numpy.cuda.memory import reset_peak_memory_stats as reset_max_memory_cached
from torchemu.frontends.numpy.cuda.memory import reset_peak_memory_stats as reset_peak_memory_stats
from torchemu.frontends.numpy.cuda.memory import set_per_process_memory_fraction as set_per_process_memory_fraction
from torchemu.runtime import memory_use as memory_use

