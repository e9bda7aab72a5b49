"""megatron.core.tensor_parallel.layers."""

from torchemu.tp._weights import (
    _initialize_affine_weight_cpu as _initialize_affine_weight_cpu,
)
from torchemu.tp._weights import (
    _initialize_affine_weight_gpu as _initialize_affine_weight_gpu,
)
from torchemu.tp.layers import *  # noqa: F403
