"""torch.autograd: gradients. See torchemu._autograd for how they are recorded and found."""

import importlib
from typing import Any

from torchemu._autograd.api import backward, grad
from torchemu._autograd.function import Function
from torchemu._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from torchemu.autograd import anomaly_mode, function, functional, graph
from torchemu.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from torchemu.autograd.gradcheck import gradcheck, gradgradcheck
from torchemu.autograd.variable import Variable

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
        return importlib.import_module("torchemu.autograd.profiler")
    raise AttributeError(f"module 'torch.autograd' has no attribute {name!r}")
