"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.errors import OutOfMemoryError as OutOfMemoryError
from torchemu.frontends.numpy.cuda import memory as memory
from torchemu.frontends.numpy.cuda._devices import can_device_access_peer as can_device_access_peer
from torchemu.frontends.numpy.cuda._devices import device as device
from torchemu.frontends.numpy.cuda._devices import device_of as device_of
from torchemu.frontends.numpy.cuda._devices import get_arch_list as get_arch_list
from torchemu.frontends.numpy.cuda._devices import get_device_capability as get_device_capability
from torchemu.frontends.numpy.cuda._devices import get_device_name as get_device_name
from torchemu.frontends.numpy.cuda._devices import get_device_properties as get_device_properties
from torchemu.frontends.numpy.cuda._devices import init as init
from torchemu.frontends.numpy.cuda._devices import ipc_collect as ipc_collect
from torchemu.frontends.numpy.cuda._devices import is_bf16_supported as is_bf16_supported
from torchemu.frontends.numpy.cuda._devices import is_current_stream_capturing as is_current_stream_capturing
from torchemu.frontends.numpy.cuda._devices import is_initialized as is_initialized
from torchemu.frontends.numpy.cuda._devices import is_tf32_supported as is_tf32_supported
from torchemu.frontends.numpy.cuda._random import get_rng_state as get_rng_state
from torchemu.frontends.numpy.cuda._random import get_rng_state_all as get_rng_state_all
from torchemu.frontends.numpy.cuda._random import initial_seed as initial_seed
from torchemu.frontends.numpy.cuda._random import manual_seed as manual_seed
from torchemu.frontends.numpy.cuda._random import manual_seed_all as manual_seed_all
from torchemu.frontends.numpy.cuda._random import seed as seed
from torchemu.frontends.numpy.cuda._random import seed_all as seed_all
from torchemu.frontends.numpy.cuda._random import set_rng_state as set_rng_state
from torchemu.frontends.numpy.cuda._random import set_rng_state_all as set_rng_state_all
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

