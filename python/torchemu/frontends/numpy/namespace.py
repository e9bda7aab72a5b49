"""The names that ``import torchemu as torch`` gives; see torchemu/__init__.py."""

# ruff: noqa: F403 (torchemu.frontends.numpy._tensor.__all__ says what there is)

from __future__ import annotations

import importlib
import math
from typing import Any

from torchemu import dtypes, errors, multiprocessing, runtime, version
from torchemu.dtypes import dtype
from torchemu.errors import AcceleratorError, OutOfMemoryError
from torchemu.frontends.numpy import _tensor, ahbm, autograd, distributed, linalg
from torchemu.frontends.numpy._device import device
from torchemu.frontends.numpy._grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from torchemu.frontends.numpy._limits import finfo, iinfo
from torchemu.frontends.numpy._placement import DPPolicy
from torchemu.frontends.numpy._settings import current as current_settings
from torchemu.frontends.numpy._settings import (
    get_default_device,
    get_default_dtype,
    set_default_device,
    set_default_dtype,
)
from torchemu.frontends.numpy._streams import Event, Stream
from torchemu.frontends.numpy._tensor import *
from torchemu.frontends.numpy._tensor import factors, foreach, return_types
from torchemu.frontends.numpy._tensor.memory import OldType, old_types
from torchemu.frontends.numpy.amp import autocast, switches
from torchemu.frontends.numpy.amp.switches import *
from torchemu.frontends.numpy.autograd.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled
from torchemu.frontends.numpy.compiler import compile  # noqa: A004 (PyTorch's name)
from torchemu.frontends.numpy.random import (
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from torchemu.frontends.numpy.serialization import load, save
from torchemu.runtime import World
from torchemu.runtime import opened as open_world
from torchemu.unsupported import UnsupportedNameError

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
    "get_num_interop_threads",
    "get_num_threads",
    "get_rng_state",
    "iinfo",
    "inf",
    "inference_mode",
    "initial_seed",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_complex",
    "is_deterministic_algorithms_warn_only_enabled",
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
    "set_default_tensor_type",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_grad_enabled",
    "set_num_interop_threads",
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


def get_num_interop_threads() -> int:
    """1: a rank is one thread."""
    return 1


def set_num_interop_threads(num: int) -> None:
    """Does nothing: a rank is one thread."""


def set_flush_denormal(mode: bool) -> bool:
    """False: denormal numbers stay as they are."""
    return False


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """False: no algorithm would have to be warned of."""
    return False


def set_default_tensor_type(t: Any) -> None:
    """Makes the dtype of an old class of floats, such as torch.DoubleTensor, the default one.

    Raises:
        TypeError: there is no such class, or it is not one of floats.
    """
    found = NAMES.get(t.removeprefix("torch.")) if isinstance(t, str) else t
    if not isinstance(found, OldType):
        raise TypeError(f"invalid type object: {t!r}")
    set_default_dtype(found.dtype)


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

_OF_LAYERS = (
    "adaptive_avg_pool1d alpha_dropout avg_pool1d bilinear celu celu_ channel_shuffle conv1d conv2d conv3d "
    "conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity dropout feature_alpha_dropout group_norm "
    "hardshrink layer_norm max_pool1d max_pool2d max_pool3d pairwise_distance pixel_shuffle pixel_unshuffle prelu "
    "relu_ rms_norm rrelu rrelu_ selu selu_ threshold threshold_"
)
_OF_TENSORS = (
    "addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ clamp_ clamp_max_ clamp_min_ clip_ "
    "conj_physical_ detach_ fill_ fix_ get_device index_put_ is_same_size is_signed logit_ nan_to_num_ negative_ put "
    "resize_as_ round_ split_with_sizes zero_"
)

LAYERS = frozenset(_OF_LAYERS.split())
"""Those functions of torch.nn.functional that are called alike here."""

METHODS = frozenset(_OF_TENSORS.split()) | frozenset(_tensor.elementwise.in_place())
"""Those methods of tensors that are functions too."""

NAMES: dict[str, Any] = {
    "return_types": return_types,
    "chain_matmul": linalg.chain_matmul,
    **factors.FUNCTIONS,
    **foreach.functions(),
    **_DTYPES,
    **old_types("cpu"),
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
    if name in ("chalf", "complex32"):
        raise UnsupportedNameError(dtypes.NO_COMPLEX32)
    raise AttributeError(f"module 'torch' has no attribute {name!r}, as far as torchemu goes")


def __dir__() -> list[str]:
    return sorted({*NAMES, *LAYERS, *METHODS, "default_generator", "spec"})
