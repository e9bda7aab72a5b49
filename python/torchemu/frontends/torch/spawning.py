"""torch.multiprocessing: what a program starts as processes are ranks of the World."""

from __future__ import annotations

import torch
import torch.multiprocessing

from torchemu import multiprocessing as emulated
from torchemu.frontends.torch.session import Session
from torchemu.multiprocessing import _shared


def install(run: Session) -> None:
    """Makes torch.multiprocessing start ranks, until the run ends."""
    for name in emulated.__all__:
        if hasattr(torch.multiprocessing, name):
            run.replace(torch.multiprocessing, name, getattr(emulated, name))
    _shared.share(torch.Tensor, _of_same_memory)
    run.stack.callback(_shared.unshare, torch.Tensor)


def _of_same_memory(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a tensor for another process, as PyTorch makes it there: in the same memory, without a gradient."""
    if type(tensor) is torch.nn.Parameter:
        return torch.nn.Parameter(tensor.detach(), tensor.requires_grad)
    if type(tensor) is not torch.Tensor:
        return tensor
    return tensor.detach().requires_grad_(tensor.requires_grad)
