"""torch.autograd: gradients. See torchemu._autograd for how they are recorded and found."""

from torchemu._autograd.api import backward, grad
from torchemu._autograd.function import Function
from torchemu._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from torchemu.autograd import function, graph
from torchemu.autograd.gradcheck import gradcheck
from torchemu.autograd.variable import Variable

__all__ = [
    "Function",
    "Variable",
    "backward",
    "enable_grad",
    "function",
    "grad",
    "gradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
]
