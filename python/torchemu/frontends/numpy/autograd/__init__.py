"""torch.autograd: gradients. See _autograd for how they are recorded and found."""

from torchemu.frontends.numpy._absent import lacks
from torchemu.frontends.numpy._autograd.api import backward, grad
from torchemu.frontends.numpy._autograd.function import Function
from torchemu.frontends.numpy._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from torchemu.frontends.numpy.autograd import function

__all__ = [
    "Function",
    "backward",
    "enable_grad",
    "function",
    "grad",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
]

__getattr__ = lacks(__name__)
