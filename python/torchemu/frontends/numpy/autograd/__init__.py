"""torch.autograd: gradients. See _autograd for how they are recorded and found."""

import importlib
from typing import Any

from torchemu.frontends.numpy._autograd.api import backward, grad
from torchemu.frontends.numpy._autograd.function import Function
from torchemu.frontends.numpy._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from torchemu.frontends.numpy.autograd import anomaly_mode, function, functional, graph
from torchemu.frontends.numpy.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from torchemu.frontends.numpy.autograd.gradcheck import gradcheck, gradgradcheck
from torchemu.frontends.numpy.autograd.variable import Variable

__all__ = [
    "Function",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]


def __getattr__(name: str) -> Any:
    """torch.autograd.profiler, which is loaded when it is used."""
    if name == "profiler":
        return importlib.import_module("torchemu.frontends.numpy.autograd.profiler")
    raise AttributeError(f"module 'torch.autograd' has no attribute {name!r}")
