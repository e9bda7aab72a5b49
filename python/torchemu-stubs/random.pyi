"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy._tensor.core import Tensor as Tensor
from torchemu.frontends.numpy._tensor.generator import Generator as Generator
from torchemu.frontends.numpy._tensor.generator import default_generator as default_generator
from torchemu.frontends.numpy._tensor.generator import seed_devices as seed_devices
from torchemu.frontends.numpy.random import get_rng_state as get_rng_state
from torchemu.frontends.numpy.random import initial_seed as initial_seed
from torchemu.frontends.numpy.random import manual_seed as manual_seed
from torchemu.frontends.numpy.random import seed as seed
from torchemu.frontends.numpy.random import set_rng_state as set_rng_state

