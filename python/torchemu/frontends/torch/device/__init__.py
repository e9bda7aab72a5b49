"""Simulated devices under the installed PyTorch: ``cuda`` is a name on memory of the CPU, and operations take time.

See DESIGN.md, "The installed PyTorch's devices".
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import torch
from torch.utils import _python_dispatch

from torchemu.frontends.torch.device import (
    ahbm,
    assumptions,
    attention,
    casts,
    composites,
    cuda,
    deferral,
    device_program_memory,
    dropouts,
    elements,
    fakes,
    foreach,
    nccl_calls,
    networks,
    norms,
    replicas,
    storages,
    tensors,
    undefined,
    visible,
)
from torchemu.frontends.torch.device.dispatch import RankMode
from torchemu.frontends.torch.device.ground import Context
from torchemu.frontends.torch.device.initialization import Process as Process
from torchemu.frontends.torch.device.initialization import inside as inside
from torchemu.frontends.torch.device.patches import Replacements
from torchemu.frontends.torch.device.places import made_in_turn as made_in_turn
from torchemu.frontends.torch.device.places import made_on as made_on
from torchemu.frontends.torch.device.timing import TimingMode

_replaced: Replacements | None = None


def install() -> None:
    """Gives torch.Tensor, torch.cuda and the like the simulated devices, for the whole process. Only once."""
    global _replaced
    if _replaced is not None:
        return
    _replaced = Replacements()
    tensors.put(_replaced)
    composites.put(_replaced)
    assumptions.put(_replaced)
    storages.put(_replaced)
    cuda.put(_replaced)
    ahbm.put(_replaced)
    foreach.put(_replaced)
    networks.put(_replaced)
    norms.put(_replaced)
    dropouts.put(_replaced)
    replicas.put(_replaced)
    nccl_calls.put(_replaced)
    undefined.put(_replaced)
    attention.put(_replaced)
    fakes.put(_replaced)
    casts.put(_replaced)


def uninstall() -> None:
    """Takes back what install has done."""
    global _replaced
    if _replaced is not None:
        _replaced.take_back()
        _replaced = None


@contextlib.contextmanager
def running(rank: Context | None = None, data: bool = True) -> Iterator[RankMode]:
    """Makes operations of the calling thread those of a rank, the running one where none is given.

    Args:
        rank: whose they are.
        data: tensors of devices have elements; without, operations take their time and nothing is computed.
    """
    install()
    mode = RankMode(rank) if data else TimingMode(rank)
    casts.ask()
    elements.make(data)
    try:
        with mode:
            yield mode
    finally:
        elements.make(True)


def begin(rank: Context, data: bool = True) -> None:
    """Makes operations of the calling thread those of a rank until the thread ends; see running. The main thread, which
    has a rank's context for moments between others, is no rank's."""
    if threading.get_ident() == threading.main_thread().ident:
        return
    casts.ask()
    elements.make(data)
    visible.note_begin()
    (RankMode(rank) if data else TimingMode(rank)).__enter__()


def end() -> None:
    """Takes the modes from the calling thread, which ends: were they there until the system ended it, PyTorch would ask
    for Python's lock then, and end the process where Python is gone already."""
    while torch._C._len_torch_dispatch_stack():
        _python_dispatch._pop_mode()


goes_on, moves_nothing, before_use = deferral.goes_on, deferral.moves_nothing, device_program_memory.before_use
