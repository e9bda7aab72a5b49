"""torch.nn.functional: what modules calculate with."""

from torchemu._tensor.elementwise import sigmoid, tanh
from torchemu._tensor.parametric import gelu, softplus
from torchemu._unsupported import unsupported_names
from torchemu.nn._functional.activation import log_softmax, relu, silu, softmax
from torchemu.nn._functional.attention import scaled_dot_product_attention
from torchemu.nn._functional.dropout import dropout
from torchemu.nn._functional.embedding import embedding, one_hot
from torchemu.nn._functional.linear import linear
from torchemu.nn._functional.losses import cross_entropy, l1_loss, mse_loss, nll_loss
from torchemu.nn._functional.normalization import layer_norm, rms_norm
from torchemu.nn._functional.padding import pad
from torchemu.nn._missing import FUNCTIONS, INSTEAD

__all__ = [
    "cross_entropy",
    "dropout",
    "embedding",
    "gelu",
    "l1_loss",
    "layer_norm",
    "linear",
    "log_softmax",
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
