"""The NumPy front end as programs see it: ``torch``, with PyTorch's own names for its classes and functions."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchemu import version
from torchemu.frontends.base import FrontEnd, Torch

if TYPE_CHECKING:
    from torchemu import runtime

_PACKAGE = "torchemu.frontends.numpy"

_ONLY_HERE = ("ahbm",)
"""Modules that PyTorch has not: names from there stay as they are."""

_MOVED = {
    "torch": (
        "_device.device _limits.finfo _limits.iinfo _shape.Size _streams.Event _streams.Stream "
        "_tensor.core.Tensor torchemu.dtypes.dtype torchemu.errors.AcceleratorError "
        "torchemu.errors.OutOfMemoryError"
    ),
    "torch._C": "_tensor.generator.Generator",
    "torch._C._distributed_c10d": (
        "distributed._backend_groups.Backend torchemu.c10d.completion.OpType torchemu.c10d.completion.WorkInfo "
        "distributed._options.AllgatherOptions "
        "torchemu.c10d.stores.FileStore torchemu.c10d.stores.HashStore torchemu.c10d.stores.TCPStore"
    ),
    "torch.autograd.function": "_autograd.function.Function _autograd.function.FunctionCtx",
    "torch.autograd.grad_mode": "_grad_mode",
    "torch.cuda": "cuda._devices.device cuda._devices.device_of",
    "torch.cuda.random": "cuda._random",
    "torch.distributed": (
        "torchemu.c10d.backends.is_available torchemu.c10d.debug.breakpoint torchemu.errors.DistBackendError "
        "torchemu.errors.DistError torchemu.errors.DistNetworkError torchemu.errors.DistStoreError "
        "torchemu.errors.QueueEmptyError"
    ),
    "torch.distributed.rendezvous": "torchemu.c10d.rendezvous",
    "torch.futures": "torchemu.c10d.futures",
    "torch.distributed.distributed_c10d": (
        "distributed._backend_groups.ProcessGroupGloo distributed._backend_groups.ProcessGroupNCCL "
        "torchemu.c10d.backends torchemu.c10d.barriers torchemu.c10d.debug torchemu.c10d.exchanges "
        "torchemu.c10d.groups distributed._process_group "
        "torchemu.c10d.lifecycle torchemu.c10d.new_groups.new_group "
        "torchemu.c10d.new_groups.new_subgroups torchemu.c10d.new_groups.shrink_group "
        "torchemu.c10d.new_groups.new_subgroups_by_enumeration torchemu.c10d.new_groups.split_group "
        "torchemu.c10d.objects torchemu.c10d.p2p torchemu.c10d.reduce_op.ReduceOp "
        "torchemu.c10d.reduce_op.supports_complex torchemu.c10d.reductions torchemu.c10d.store_base.Store "
        "torchemu.c10d.work.Work torchemu.c10d.stores.PrefixStore distributed._options.AllToAllOptions "
        "distributed._options.AllreduceCoalescedOptions distributed._options.AllreduceOptions "
        "distributed._options.BarrierOptions distributed._options.BroadcastOptions "
        "distributed._options.GatherOptions distributed._options.ReduceOptions "
        "distributed._options.ReduceScatterOptions distributed._options.ScatterOptions"
    ),
    "torch.multiprocessing.spawn": (
        "torchemu.multiprocessing._errors.ProcessExitedException "
        "torchemu.multiprocessing._errors.ProcessRaisedException"
    ),
    "torch.optim.adamw": "optim.adam.AdamW",
    "torch.profiler": "torchemu.profile.annotation profiler._profile profiler._schedule",
}
"""Names that PyTorch has in another module than this front end: single ones, or modules with all their public names.
What begins with torchemu lies outside of the front end."""

_MODULES = {
    "torch.autograd.grad_mode": "_grad_mode",
    "torch.multiprocessing": "torchemu.multiprocessing",
    "torch.optim.adamw": "optim.adam",
    "torch.version": "torchemu.version",
}
"""Modules of PyTorch whose names this front end has in a file of another name."""

_TORCHS_OWN = ("_C", "_checkpoint", "_distributed_c10d")
"""Private names that PyTorch's modules have, too."""


def _placed(place: str) -> str:
    return place if place.startswith("torchemu.") else f"{_PACKAGE}.{place}"


_HOMES = {_placed(place): home for home, places in _MOVED.items() for place in places.split()}


def _home(module: str, name: str) -> str:
    """The module where PyTorch has a class or function of this front end; its own, if PyTorch has none."""
    found = _HOMES.get(f"{module}.{name}") or (None if name.startswith("_") else _HOMES.get(module))
    if found is not None:
        return found
    if module.startswith("torchemu.multiprocessing"):
        inside = module.removeprefix("torchemu.")
    elif module.startswith(f"{_PACKAGE}."):
        inside = module.removeprefix(f"{_PACKAGE}.")
    else:
        return module
    parts = inside.split(".")
    private = any(part.startswith("_") and part not in _TORCHS_OWN for part in parts)
    return module if private or parts[0] in _ONLY_HERE else f"torch.{inside}"


@contextlib.contextmanager
def _opened(world: runtime.World, seed: int, data: bool) -> Iterator[None]:
    from torchemu.frontends import stand_ins

    with stand_ins.installed(_TORCH.name):
        importlib.import_module(f"{_PACKAGE}.namespace")  # while sys.path is nobody's but our own
        yield


_TORCH = Torch("numpy", "torchemu's own, on NumPy", opened=_opened, is_default=True)

FRONT_END = FrontEnd(
    torch=_TORCH,
    packages={"torch": _PACKAGE},
    modules={name: _placed(place) for name, place in _MODULES.items()},
    home=_home,
    version=version.__version__,
)
