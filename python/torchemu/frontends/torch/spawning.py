"""torch.multiprocessing: what a program starts as processes are ranks of the World."""

from __future__ import annotations

import torch.multiprocessing

from torchemu import multiprocessing as emulated
from torchemu.frontends.torch.session import Session


def install(run: Session) -> None:
    """Makes torch.multiprocessing start ranks, until the run ends."""
    for name in emulated.__all__:
        if hasattr(torch.multiprocessing, name):
            run.replace(torch.multiprocessing, name, getattr(emulated, name))
