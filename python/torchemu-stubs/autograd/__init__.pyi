"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy._autograd.api import backward as backward
from torchemu.frontends.numpy._autograd.api import grad as grad
from torchemu.frontends.numpy._autograd.function import Function as Function
from torchemu.frontends.numpy._grad_mode import enable_grad as enable_grad
from torchemu.frontends.numpy._grad_mode import inference_mode as inference_mode
from torchemu.frontends.numpy._grad_mode import no_grad as no_grad
from torchemu.frontends.numpy._grad_mode import set_grad_enabled as set_grad_enabled
from torchemu.frontends.numpy.autograd import function as function

