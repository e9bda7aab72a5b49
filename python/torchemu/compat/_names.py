"""What classes and functions are called inside a run: by the module where PyTorch has them.

Programs print, log and pickle types, and a traceback begins with the name of its exception. Inside a run ``import
torch`` gives torchemu, so there ``torch.Tensor`` is ``<class 'torch.Tensor'>``, and pickle finds it by that name. Under
``import torchemu`` everything has the name of the file that it is in.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

_ONLY_HERE = (
    *("ahbm", "bench", "cli", "compat", "dtypes", "errors", "kernels", "language", "ops", "pto", "pytest_plugin"),
    *("report", "run", "tp"),
)
"""What torchemu has and PyTorch has not: names from there stay as they are, but for those below."""

_MOVED = {
    "torch": "_device.device _limits.finfo _limits.iinfo _shape.Size _streams.Event _streams.Stream "
    "_tensor.core.Tensor dtypes.dtype errors.AcceleratorError errors.OutOfMemoryError",
    "torch._C": "_tensor.generator.Generator",
    "torch._C._distributed_c10d": "distributed._backend_groups.Backend distributed._completion.OpType "
    "distributed._completion.WorkInfo "
    "distributed._fake.FakeProcessGroup "
    "distributed._fake.FakeWork distributed._grad_bucket.GradBucket distributed._missing.BuiltinCommHookType "
    "distributed._options.AllgatherOptions distributed.store.FileStore distributed.store.HashStore "
    "distributed.store.TCPStore",
    "torch.autograd.function": "_autograd.function.Function _autograd.function.FunctionCtx",
    "torch.autograd.grad_mode": "_grad_mode",
    "torch.autograd.graph": "_autograd.node.Node",
    "torch.cuda": "cuda._devices.device cuda._devices.device_of",
    "torch.cuda.memory": "_memory_pools.MemPool",
    "torch.distributed": "distributed._backends.is_available distributed._debug.breakpoint errors.DistBackendError "
    "errors.DistError errors.DistNetworkError errors.DistStoreError errors.QueueEmptyError",
    "torch.distributed._functional_collectives": "distributed._async_tensor.AsyncCollectiveTensor",
    "torch.distributed.distributed_c10d": "distributed._backend_groups.ProcessGroupGloo "
    "distributed._backend_groups.ProcessGroupNCCL distributed._backends distributed._barriers distributed._debug "
    "distributed._exchanges distributed._groups distributed._internals distributed._lifecycle "
    "distributed._new_groups.new_group distributed._new_groups.new_subgroups distributed._new_groups.shrink_group "
    "distributed._new_groups.new_subgroups_by_enumeration distributed._new_groups.split_group "
    "distributed._objects distributed._p2p distributed._reduce_op.ReduceOp "
    "distributed._reduce_op.supports_complex distributed._reductions distributed._store_base.Store "
    "distributed._work.Work distributed.store.PrefixStore distributed._options.AllToAllOptions "
    "distributed._options.AllreduceCoalescedOptions distributed._options.AllreduceOptions "
    "distributed._options.BarrierOptions distributed._options.BroadcastOptions distributed._options.GatherOptions "
    "distributed._options.ReduceOptions distributed._options.ReduceScatterOptions distributed._options.ScatterOptions",
    "torch.multiprocessing.spawn": "multiprocessing._errors.ProcessExitedException "
    "multiprocessing._errors.ProcessRaisedException",
    "torch.nn.modules.conv": "nn.modules.convolution",
    "torch.nn.modules.flatten": "nn.modules.linear.Flatten nn.modules.linear.Unflatten",
    "torch.nn.modules.instancenorm": "nn.modules.batchnorm.InstanceNorm1d nn.modules.batchnorm.InstanceNorm2d "
    "nn.modules.batchnorm.InstanceNorm3d",
    "torch.optim.adadelta": "optim.adaptive.Adadelta",
    "torch.optim.adagrad": "optim.adaptive.Adagrad",
    "torch.optim.adamw": "optim.adam.AdamW",
    "torch.optim.lr_scheduler": "optim._cycles optim._plateau optim._schedule",
    "torch.optim.rmsprop": "optim.adaptive.RMSprop",
    "torch.profiler": "profiler._annotation profiler._profile profiler._schedule",
    "torch.serialization": "_safe_globals.safe_globals",
}
"""Where PyTorch has what is in a private module of torchemu, or in one of another name: single names, or modules with
all public names that the home has."""

FILES = {
    "torch.autograd.grad_mode": "torchemu._grad_mode",
    "torch.nn.modules.conv": "torchemu.nn.modules.convolution",
    "torch.nn.modules.flatten": "torchemu.nn.modules.linear",
    "torch.nn.modules.instancenorm": "torchemu.nn.modules.batchnorm",
    "torch.optim.adadelta": "torchemu.optim.adaptive",
    "torch.optim.adagrad": "torchemu.optim.adaptive",
    "torch.optim.adamw": "torchemu.optim.adam",
    "torch.optim.rmsprop": "torchemu.optim.adaptive",
}
"""The modules of torchemu that have what PyTorch has in modules for which torchemu has no file of that name."""

_HOMES = {f"torchemu.{place}": home for home, places in _MOVED.items() for place in places.split()}


def _home(module: str, name: str) -> str:
    """The module where PyTorch has a class or function of torchemu; its own, if PyTorch has none."""
    found = _HOMES.get(f"{module}.{name}") or (None if name.startswith("_") else _HOMES.get(module))
    if found is not None:
        return found
    parts = module.split(".")[1:]
    private = any(part.startswith("_") and not _is_torchs(part) for part in parts)
    return module if private or not parts or parts[0] in _ONLY_HERE else ".".join(("torch", *parts))


def _is_torchs(part: str) -> bool:
    """Whether PyTorch, too, has a module of this private name."""
    return part in ("_C", "_checkpoint", "_distributed_c10d", "_functional_collectives", "_symmetric_memory", "_pytree")


class Names:
    """Gives classes and functions the names that they have in PyTorch, and takes them back."""

    def __init__(self) -> None:
        self._changed: list[tuple[Any, str]] = []

    def give(self, module: ModuleType) -> None:
        """To all that is defined in a module."""
        for value in list(vars(module).values()):  # its type is asked: some of them warn of any other look
            if issubclass(type(value), type | FunctionType) and value.__module__ == module.__name__:
                self._rename(value)

    def _rename(self, value: Any) -> None:
        before = value.__module__
        home = _home(before, value.__qualname__)
        if home != before:
            value.__module__ = home
            self._changed.append((value, before))

    def take_back(self) -> None:
        """From all that have got one."""
        for value, before in self._changed:
            value.__module__ = before
        self._changed.clear()


@contextlib.contextmanager
def given() -> Iterator[Names]:
    """PyTorch's names for all that is loaded, for the duration of a with block; in one that is within another there is
    nothing left to do."""
    names = Names()
    for name, module in list(sys.modules.items()):
        if name.startswith("torchemu."):
            names.give(module)
    try:
        yield names
    finally:
        names.take_back()


class NamingLoader(importlib.machinery.SourceFileLoader):
    """Loads a module of torchemu whose names are to be PyTorch's."""

    names: Names

    def exec_module(self, module: ModuleType) -> None:
        """Executes it, and renames what is in it."""
        super().exec_module(module)
        self.names.give(module)
