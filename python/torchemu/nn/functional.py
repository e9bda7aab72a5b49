"""torch.nn.functional: what modules calculate with."""

from torchemu._tensor.elementwise import sigmoid, tanh
from torchemu._tensor.parametric import gelu, softplus
from torchemu._unsupported import unsupported_names
from torchemu.nn._functional.activation import log_softmax, relu, silu, softmax
from torchemu.nn._functional.attention import scaled_dot_product_attention
from torchemu.nn._functional.batch_normalization import (
    batch_norm,
    group_norm,
    instance_norm,
)
from torchemu.nn._functional.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from torchemu.nn._functional.dropout import dropout
from torchemu.nn._functional.embedding import embedding, one_hot
from torchemu.nn._functional.linear import linear
from torchemu.nn._functional.losses import cross_entropy, l1_loss, mse_loss, nll_loss
from torchemu.nn._functional.normalization import layer_norm, rms_norm
from torchemu.nn._functional.padding import pad
from torchemu.nn._functional.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from torchemu.nn._missing import FUNCTIONS, INSTEAD

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cross_entropy",
    "dropout",
    "embedding",
    "gelu",
    "group_norm",
    "instance_norm",
    "l1_loss",
    "layer_norm",
    "linear",
    "log_softmax",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "mse_loss",
    "nll_loss",
    "one_hot",
    "pad",
    "relu",
    "rms_norm",
    "scaled_dot_product_attention",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "tanh",
]

__getattr__ = unsupported_names("torch.nn.functional", FUNCTIONS, INSTEAD)
