"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.amp.switches import autocast_decrement_nesting as autocast_decrement_nesting
from torchemu.frontends.numpy.amp.switches import autocast_increment_nesting as autocast_increment_nesting
from torchemu.frontends.numpy.amp.switches import clear_autocast_cache as clear_autocast_cache
from torchemu.frontends.numpy.amp.switches import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from torchemu.frontends.numpy.amp.switches import get_autocast_dtype as get_autocast_dtype
from torchemu.frontends.numpy.amp.switches import get_autocast_gpu_dtype as get_autocast_gpu_dtype
from torchemu.frontends.numpy.amp.switches import is_autocast_cache_enabled as is_autocast_cache_enabled
from torchemu.frontends.numpy.amp.switches import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from torchemu.frontends.numpy.amp.switches import is_autocast_enabled as is_autocast_enabled
from torchemu.frontends.numpy.amp.switches import set_autocast_cache_enabled as set_autocast_cache_enabled
from torchemu.frontends.numpy.amp.switches import set_autocast_cpu_dtype as set_autocast_cpu_dtype
from torchemu.frontends.numpy.amp.switches import set_autocast_cpu_enabled as set_autocast_cpu_enabled
from torchemu.frontends.numpy.amp.switches import set_autocast_dtype as set_autocast_dtype
from torchemu.frontends.numpy.amp.switches import set_autocast_enabled as set_autocast_enabled
from torchemu.frontends.numpy.amp.switches import set_autocast_gpu_dtype as set_autocast_gpu_dtype

