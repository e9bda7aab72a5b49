"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.autograd.functional import hessian as hessian
from torchemu.frontends.numpy.autograd.functional import hvp as hvp
from torchemu.frontends.numpy.autograd.functional import jacobian as jacobian
from torchemu.frontends.numpy.autograd.functional import jvp as jvp
from torchemu.frontends.numpy.autograd.functional import vhp as vhp
from torchemu.frontends.numpy.autograd.functional import vjp as vjp

