"""The names that ``import torchemu as torch`` gives; see torchemu/__init__.py."""

# ruff: noqa: F403 (torchemu._tensor.__all__ says what there is)

from __future__ import annotations

import math
from typing import Any

from torchemu import _runtime, _tensor, ahbm, autograd, distributed, dtypes, errors, multiprocessing, version
from torchemu._device import device
from torchemu._grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from torchemu._limits import finfo, iinfo
from torchemu._placement import DPPolicy
from torchemu._runtime import World
from torchemu._runtime import opened as open_world
from torchemu._settings import current as current_settings
from torchemu._settings import get_default_device, get_default_dtype, set_default_device, set_default_dtype
from torchemu._streams import Event, Stream
from torchemu._tensor import *
from torchemu._tensor.memory import old_types
from torchemu._unsupported import UnsupportedNameError
from torchemu.amp import autocast, switches
from torchemu.amp.switches import *
from torchemu.autograd.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled
from torchemu.compiler import compile  # noqa: A004 (PyTorch's name)
from torchemu.dtypes import dtype
from torchemu.errors import AcceleratorError, OutOfMemoryError
from torchemu.random import get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from torchemu.serialization import load, save

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
    "are_deterministic_algorithms_enabled",
    "autocast",
    "autograd",
    "compile",
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
    "get_float32_matmul_precision",
    "get_num_threads",
    "get_rng_state",
    "iinfo",
    "inf",
    "inference_mode",
    "initial_seed",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_complex",
    "is_floating_point",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_nonzero",
    "is_storage",
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
    "save",
    "seed",
    "set_default_device",
    "set_default_dtype",
    "set_float32_matmul_precision",
    "set_grad_enabled",
    "set_num_threads",
    "set_rng_state",
    "use_deterministic_algorithms",
]
__all__ += _tensor.__all__
__all__ += switches.__all__


def is_tensor(obj: Any) -> bool:
    """Whether it is a tensor."""
    return isinstance(obj, _tensor.Tensor)


def is_complex(input: _tensor.Tensor) -> bool:  # noqa: A002 (PyTorch's name)
    """Whether the tensor is of complex numbers."""
    return input.dtype.is_complex


def is_nonzero(input: _tensor.Tensor) -> bool:  # noqa: A002
    """Whether a tensor's only element is not zero."""
    return input.is_nonzero()


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Does nothing: all algorithms are deterministic."""


def are_deterministic_algorithms_enabled() -> bool:
    """True: there are no others."""
    return True


def get_num_threads() -> int:
    """1: a rank is one thread."""
    return 1


def set_num_threads(num: int) -> None:
    """Does nothing: a rank is one thread."""


def get_float32_matmul_precision() -> str:
    """What the rank has said, at first highest. Products of float32 are not rounded in any case."""
    return current_settings().matmul_precision


def set_float32_matmul_precision(precision: str) -> None:
    """Keeps what the rank says, and changes nothing: products of float32 are not rounded.

    Raises:
        RuntimeError: there is no such precision.
    """
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"float32_matmul_precision must be highest, high or medium, not {precision!r}")
    current_settings().matmul_precision = precision


def is_storage(obj: Any) -> bool:
    """Whether it is a storage."""
    return isinstance(obj, _tensor.memory.UntypedStorage)


def is_floating_point(input: _tensor.Tensor) -> bool:  # noqa: A002 (PyTorch's name)
    """Whether the tensor is of floats."""
    return input.dtype.is_floating_point


def numel(input: _tensor.Tensor) -> int:  # noqa: A002 (PyTorch's name)
    """The number of elements."""
    return input.numel()


_DTYPES = {name: d for d in dtypes.ALL for name in d.names}
_OTHERS = ("__version__", "__all__", *__all__)

NAMES: dict[str, Any] = {**_DTYPES, **old_types("cpu"), **{name: globals()[name] for name in _OTHERS}}
"""All that never changes; ``import *`` takes __all__ of it only, for some dtypes have the names of builtins."""


def __getattr__(name: str) -> Any:
    """torch.spec, the topology of the current World, and torch.default_generator, the rank's."""
    if name == "spec":
        return _runtime.current_world().spec
    if name == "default_generator":
        return _tensor.generator.default_generator()
    if name in ("chalf", "complex32"):
        raise UnsupportedNameError(dtypes.NO_COMPLEX32)
    raise AttributeError(f"module 'torch' has no attribute {name!r}, as far as torchemu goes")


def __dir__() -> list[str]:
    return sorted({*NAMES, "default_generator", "spec"})
