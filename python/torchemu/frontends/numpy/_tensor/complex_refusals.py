"""PyTorch's words where an operation is not for complex numbers."""

from __future__ import annotations

from torchemu import dtypes
from torchemu.frontends.numpy._tensor.dispatch import not_implemented

_UNLIKE_NUMPY = "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
_SENTENCES = {
    "sign": _UNLIKE_NUMPY,
    **{name: f"{name} is not supported for complex inputs" for name in ("floor", "ceil", "trunc")},
    **dict.fromkeys(("clamp", "relu"), "clamp is not supported for complex types"),
}
_RUNTIME_ERRORS = {
    **{name: f"{name} not implemented for complex tensors." for name in ("maximum", "minimum")},
    **{name: f"{name}(): does not support complex input" for name in ("max", "min", "argmax", "argmin")},
    "sort": " Sort does not support complex dtypes on CPU",
}
_KERNELS = {
    "amax": "max_values_cpu",
    "amin": "min_values_cpu",
    "bernoulli": "bernoulli_scalar_cpu_",
    "bitwise_left_shift": "lshift_cpu",
    "bitwise_right_shift": "rshift_cpu",
    "div_trunc": "div_trunc_cpu",
    "floor_divide": "div_floor_cpu",
    "gelu": "GeluKernelImpl",
    "max_all": "max_all",
    "min_all": "min_all",
    "unique": "unique",
    **{name: f"{name}_vml_cpu" for name in ("erf", "round")},
}


def refused_of_complex(name: str, kind: dtypes.dtype) -> Exception:
    """The error of an operation that a complex dtype has not."""
    if name in _RUNTIME_ERRORS:
        return RuntimeError(_RUNTIME_ERRORS[name])
    if name in _SENTENCES:
        return NotImplementedError(_SENTENCES[name])
    return not_implemented(_KERNELS.get(name, f"{name}_cpu"), kind)


def check_not_complex(name: str, *kinds: dtypes.dtype) -> None:
    """Raises that error for the first of the dtypes that is complex."""
    for kind in kinds:
        if kind.is_complex:
            raise refused_of_complex(name, kind)
