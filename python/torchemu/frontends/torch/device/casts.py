"""Autocast with CUDA's lists for tensors whose device is a name.

PyTorch's kernels of autocast look at a tensor's device in C++, where it is the CPU. So for each operation that CUDA's
autocast knows there is one here, at the same dispatch key, which looks at the name. Each thread of a rank asks for the
key; PyTorch itself lets it out while autocast of "cuda" is off. Autocast of "cpu" is PyTorch's.

Which operations are on which list is what PyTorch 2.11 does on an H200
(tests/python/frontends/torch/recorded_cuda.json).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchemu.frontends.torch.device import places
from torchemu.frontends.torch.device.ground import ThreadLocal
from torchemu.frontends.torch.device.patches import Replacements

_KEY = torch._C.DispatchKey.AutocastCUDA
_KEYS = torch._C.DispatchKeySet(_KEY)

LOWER = {
    "_convolution", "_cudnn_rnn", "_scaled_dot_product_flash_attention", "_thnn_fused_gru_cell",
    "_thnn_fused_lstm_cell", "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "chain_matmul", "conv1d", "conv2d",
    "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution",
    "cudnn_convolution", "cudnn_convolution_transpose", "einsum", "gru_cell", "linalg_multi_dot", "linalg_vecdot",
    "linear", "lstm_cell", "matmul", "mm", "mv", "prelu", "rnn_relu_cell", "rnn_tanh_cell",
    "scaled_dot_product_attention",
}  # fmt: skip
"""Operations that are done in autocast's dtype."""

PROMOTED = {
    "addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "grid_sampler", "index_put", "scatter_add", "tensordot",
    "vdot",
}  # fmt: skip
"""Operations that are done in the widest dtype of their operands."""

IN_FLOAT32 = {
    "cumprod", "cumsum", "linalg_matrix_norm", "linalg_vector_norm", "log_softmax", "norm", "prod", "softmax", "sum",
}  # fmt: skip
"""Operations that accumulate in float32 and whose result is that, where no dtype is asked for."""

_WHOLE = ("lstm", "gru", "rnn_tanh", "rnn_relu")
"""Networks that cuDNN runs as a whole, in autocast's dtype, and the CPU as many operations."""

_OPEN = {"binary_cross_entropy"}
"""Operations that PyTorch's kernel does right: it refuses."""

_CACHE: ThreadLocal[dict[int, tuple[torch.Tensor, torch.Tensor]]] = ThreadLocal(dict)
"""Copies of parameters, by the parameters' identities, which lie beside them."""

_libraries: list[Any] = []

Rule = Callable[[Sequence[Any], dict[str, Any]], tuple[Sequence[Any], dict[str, Any]]]


def put(replaced: Replacements) -> None:
    """Puts the operations in place, and what empties the copies that are kept."""
    original = torch.clear_autocast_cache

    def clear_autocast_cache() -> None:
        """torch.clear_autocast_cache."""
        _CACHE.get().clear()
        original()

    replaced.put(torch, "clear_autocast_cache", clear_autocast_cache)
    if _libraries:
        return
    library = torch.library.Library("aten", "IMPL")
    _libraries.append(library)  # PyTorch takes back what a library did that is gone
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is a kernel already
        for name in sorted(known()):
            library.impl(name, _kernel(overload_of(name)), "AutocastCUDA")


def ask() -> None:
    """Makes the calling thread's operations come by here while autocast of "cuda" is on."""
    torch._C._dispatch_tls_set_dispatch_key_included(_KEY, True)


def known() -> list[str]:
    """Returns the names, with overloads, of the operations that the installed PyTorch casts on CUDA."""
    registered = torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCUDA")
    names = [name[6:] for name in registered if name.startswith("aten::")]
    networks = [f"{name}.{overload}" for name in _WHOLE for overload in ("input", "data")]
    return [*(name for name in names if name.partition(".")[0] not in _OPEN), *networks]


def overload_of(name: str) -> Any:
    """Returns an overload by its name, such as "sum.dim_IntList"."""
    base, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, base), overload or "default")


def _kernel(func: Any) -> Callable[..., Any]:
    rule = _rule(func)

    def call(*given: Any, **named: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(_KEYS):
            args, kwargs = rule(given, named)
            return func(*args, **kwargs)

    return call


def _rule(func: Any) -> Rule:
    base = func._schema.name.partition("::")[2]
    if base in LOWER or base in _WHOLE:
        return lambda args, kwargs: _cast(args, kwargs, torch.get_autocast_dtype("cuda"))
    if base in PROMOTED:
        return lambda args, kwargs: _cast(args, kwargs, _widest(args, kwargs))
    if base in IN_FLOAT32:
        if any(a.name == "dtype" for a in func._schema.arguments):
            return _in_float32(func)
        if base == "norm":
            return lambda args, kwargs: _cast(args, kwargs, torch.float32)
    return lambda args, kwargs: _cast(args, kwargs, torch.float32)


def _in_float32(func: Any) -> Rule:
    """Asks for results in float32, where the first operand is to be cast and no dtype is asked for."""
    at = [a.name for a in func._schema.arguments].index("dtype")

    def rule(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        given = args[at] if len(args) > at else kwargs.get("dtype")
        if given is not None or not is_eligible(args[0]):
            return args, kwargs
        if len(args) > at:
            return (*args[:at], torch.float32, *args[at + 1 :]), kwargs
        return args, {**kwargs, "dtype": torch.float32}

    return rule


def is_eligible(value: Any) -> bool:
    """Reports whether autocast changes an operand: a tensor of floats, up to 32 bits, on a simulated device."""
    return (
        isinstance(value, torch.Tensor)
        and value.is_floating_point()
        and value.dtype is not torch.float64
        and value.device.type in places.ACCELERATORS
    )


def lowered(values: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
    """Returns operands as an operation gets them that is done in autocast's dtype."""
    return _cast(values, {}, torch.get_autocast_dtype("cuda"))


def _widest(args: Sequence[Any], kwargs: dict[str, Any]) -> torch.dtype:
    """The dtype in which an operation is done that promotes its operands."""
    lower = torch.get_autocast_dtype("cuda")
    for a in (*args, *kwargs.values()):
        for t in a if isinstance(a, (list, tuple)) else (a,):
            if is_eligible(t) and t.dtype is torch.float32:
                return torch.float32
    return lower


def _cast(args: Sequence[Any], kwargs: dict[str, Any], dtype: torch.dtype) -> tuple[Sequence[Any], dict[str, Any]]:
    return [_cast_one(a, dtype) for a in args], {name: _cast_one(a, dtype) for name, a in kwargs.items()}


def _cast_one(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, (list, tuple)):
        return [_cast_one(v, dtype) for v in value]
    if not is_eligible(value) or value.dtype is dtype:
        return value
    is_kept = (
        value.dtype is torch.float32
        and dtype is torch.get_autocast_dtype("cuda")
        and value.requires_grad
        and value.is_leaf
        and not value._is_view()
        and torch.is_autocast_cache_enabled()
    )
    if not is_kept:
        return value.to(dtype)
    cache = _CACHE.get()
    if id(value) not in cache:
        cache[id(value)] = value, value.to(dtype)
    return cache[id(value)][1]
