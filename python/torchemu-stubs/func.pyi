"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.func import functional_call as functional_call
from torchemu.frontends.numpy.func import grad as grad
from torchemu.frontends.numpy.func import grad_and_value as grad_and_value
from torchemu.frontends.numpy.func import hessian as hessian
from torchemu.frontends.numpy.func import jacfwd as jacfwd
from torchemu.frontends.numpy.func import jacrev as jacrev
from torchemu.frontends.numpy.func import jvp as jvp
from torchemu.frontends.numpy.func import linearize as linearize
from torchemu.frontends.numpy.func import stack_module_state as stack_module_state
from torchemu.frontends.numpy.func import vjp as vjp
from torchemu.frontends.numpy.func import vmap as vmap

