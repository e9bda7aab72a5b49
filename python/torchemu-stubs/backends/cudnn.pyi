"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.backends.cudnn import flags as flags
from torchemu.frontends.numpy.backends.cudnn import is_available as is_available
from torchemu.frontends.numpy.backends.cudnn import version as version

allow_tf32: bool
benchmark: bool
benchmark_limit: int
deterministic: bool
enabled: bool
