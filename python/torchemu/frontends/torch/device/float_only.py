"""Operations that CUDA has for floating-point and complex numbers only, and the host for integers, too.

Their kernels have the names that PyTorch 2.11 gives on an H100: tests/python/frontends/torch/recorded_cuda.json.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

KERNELS = {
    "mm": "addmm_cuda",
    "addmm": "addmm_cuda",
    "addbmm": "addmm_cuda",
    "bmm": "baddbmm_cuda",
    "baddbmm": "baddbmm_cuda",
    "mv": "addmv_impl_cuda",
    "addmv": "addmv_impl_cuda",
    "dot": "dot",
    "vdot": "dot",
    "_softmax": "host_softmax",
    "_log_softmax": "host_softmax",
    "native_layer_norm": "LayerNormKernelImpl",
    "native_batch_norm": "batch_norm_invert_std_cuda",
    "native_group_norm": "GroupNormKernelImpl",
    "gelu": "GeluCUDAKernelImpl",
    "silu": "silu_cuda",
    "mish": "mish_cuda",
    "elu": "elu_cuda",
    "leaky_relu": "leaky_relu_cuda",
    "softplus": "softplus_cuda",
    "glu": "glu_cuda",
    "log_sigmoid_forward": "log_sigmoid_forward_cuda",
    "hardswish": "hardswish_cuda",
    "lerp": "lerp_cuda",
    "mse_loss": "mse_cuda",
    "smooth_l1_loss": "smooth_l1_cuda",
    "huber_loss": "huber_cuda",
    "binary_cross_entropy": "binary_cross_entropy_out_cuda",
    "nll_loss_forward": "nll_loss_forward_reduce_cuda_kernel_2d",
    "avg_pool2d": "avg_pool2d_out_cuda_frame",
    "max_pool2d_with_indices": "max_pool2d_with_indices_out_cuda_frame",
    "adaptive_max_pool2d": "adaptive_max_pool2d_cuda",
    "grid_sampler_2d": "grid_sampler_2d_cuda",
    "normal_": "normal_kernel_cuda",
}
"""The names of CUDA's kernels in errors, by those of operations."""

_CONVOLUTIONS = ("convolution", "_convolution", "convolution_overrideable")

_WITHOUT_ENGINE = (torch.int32, torch.int8, torch.uint8)
"""Dtypes that cuDNN knows and has no convolution for."""

_C_NAMES = {
    torch.int64: "Long",
    torch.int32: "Int",
    torch.int16: "Short",
    torch.int8: "Char",
    torch.uint8: "Byte",
    torch.bool: "Bool",
}


def kernel(name: str) -> str:
    """Returns the kernel's name of an operation that is here; "" for others."""
    if name in _CONVOLUTIONS:
        return "convolution"
    return KERNELS.get(name) or KERNELS.get(name.removesuffix("_"), "")


def check(kernel: str, args: Sequence[Any]) -> None:
    """Refuses integers on a device.

    Args:
        kernel: the name that errors have.
        args: the operation's.

    Raises:
        NotImplementedError: the first tensor has integers; a RuntimeError of convolutions.
    """
    first = next((a for a in args if isinstance(a, torch.Tensor)), None)
    name = None if first is None else _C_NAMES.get(first.dtype)
    if first is None or name is None:
        return
    if kernel != "convolution":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{name}'")
    if first.dtype in _WITHOUT_ENGINE:
        raise RuntimeError("GET was unable to find an engine to execute this computation")
    raise RuntimeError(f"getCudnnDataTypeFromScalarType() not supported for {name}")
