"""The names that ``import torchemu as torch`` gives; see torchemu/__init__.py."""

# ruff: noqa: F403 (torchemu.frontends.numpy._tensor.__all__ says what there is)

from __future__ import annotations

import importlib
import math
from typing import Any

from torchemu import dtypes, errors, multiprocessing, runtime, version
from torchemu.dtypes import dtype
from torchemu.errors import AcceleratorError, OutOfMemoryError
from torchemu.frontends.numpy import _tensor, ahbm, autograd, distributed
from torchemu.frontends.numpy._absent import missing
from torchemu.frontends.numpy._device import device
from torchemu.frontends.numpy._grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from torchemu.frontends.numpy._interactive import open_world, run_ranks
from torchemu.frontends.numpy._limits import finfo, iinfo
from torchemu.frontends.numpy._placement import DPPolicy
from torchemu.frontends.numpy._settings import (
    get_default_device,
    get_default_dtype,
    set_default_device,
    set_default_dtype,
)
from torchemu.frontends.numpy._streams import Event, Stream
from torchemu.frontends.numpy._tensor import *
from torchemu.frontends.numpy._tensor import return_types
from torchemu.frontends.numpy.random import (
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from torchemu.frontends.numpy.serialization import load, save
from torchemu.runtime import World

__version__: str = version.__version__

e, pi, inf, nan = math.e, math.pi, math.inf, math.nan
newaxis = None

__all__ = [
    "AcceleratorError",
    "DPPolicy",
    "Event",
    "OutOfMemoryError",
    "Stream",
    "World",
    "ahbm",
    "autograd",
    "device",
    "distributed",
    "dtype",
    "dtypes",
    "e",
    "enable_grad",
    "errors",
    "finfo",
    "get_default_device",
    "get_default_dtype",
    "get_num_threads",
    "get_rng_state",
    "iinfo",
    "inf",
    "inference_mode",
    "initial_seed",
    "is_complex",
    "is_floating_point",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_tensor",
    "load",
    "manual_seed",
    "multiprocessing",
    "nan",
    "newaxis",
    "no_grad",
    "numel",
    "open_world",
    "pi",
    "run_ranks",
    "save",
    "seed",
    "set_default_device",
    "set_default_dtype",
    "set_grad_enabled",
    "set_num_threads",
    "set_rng_state",
]
__all__ += _tensor.__all__


def is_tensor(obj: Any) -> bool:
    """Reports whether it is a tensor."""
    return isinstance(obj, _tensor.Tensor)


def is_complex(input: _tensor.Tensor) -> bool:  # noqa: A002 (PyTorch's name)
    """Reports whether the tensor is of complex numbers."""
    return input.dtype.is_complex


def get_num_threads() -> int:
    """1: a rank is one thread."""
    return 1


def set_num_threads(num: int) -> None:
    """Does nothing: a rank is one thread."""


def is_floating_point(input: _tensor.Tensor) -> bool:  # noqa: A002 (PyTorch's name)
    """Reports whether the tensor is of floats."""
    return input.dtype.is_floating_point


def numel(input: _tensor.Tensor) -> int:  # noqa: A002 (PyTorch's name)
    """The number of elements."""
    return input.numel()


_DTYPES = {name: d for d in dtypes.ALL for name in d.names}
_OTHERS = ("__version__", "__all__", *__all__)

LAYERS = frozenset(("dropout", "layer_norm"))
"""Functions of torch.nn.functional that are called alike here."""

METHODS = frozenset(_tensor.elementwise.in_place())
"""Methods of tensors that are functions, too."""

NAMES: dict[str, Any] = {
    "return_types": return_types,
    **_DTYPES,
    **{name: globals()[name] for name in _OTHERS},
}
"""All that never changes; ``import *`` takes __all__ of it only, for some dtypes have the names of builtins."""


def __getattr__(name: str) -> Any:
    """torch.spec, the topology of the current World; torch.default_generator, the rank's; functions of layers; "
    "methods."""
    if name == "spec":
        return runtime.current_world().spec
    if name == "default_generator":
        return _tensor.generator.default_generator()
    if name in LAYERS:
        return getattr(importlib.import_module("torchemu.frontends.numpy.nn.functional"), name)
    if name in METHODS:
        return getattr(_tensor.Tensor, name)
    raise AttributeError(missing(f"torch.{name}"))


def __dir__() -> list[str]:
    return sorted({*NAMES, *LAYERS, *METHODS, "default_generator", "spec"})
