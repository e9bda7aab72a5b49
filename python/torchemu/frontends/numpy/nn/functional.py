"""torch.nn.functional: what modules calculate with."""

from torchemu.frontends.numpy._absent import lacks
from torchemu.frontends.numpy._tensor.elementwise import sigmoid, tanh
from torchemu.frontends.numpy._tensor.parametric import gelu
from torchemu.frontends.numpy.nn._functional.activation import log_softmax, relu, silu, softmax
from torchemu.frontends.numpy.nn._functional.dropout import dropout
from torchemu.frontends.numpy.nn._functional.embedding import embedding
from torchemu.frontends.numpy.nn._functional.linear import linear
from torchemu.frontends.numpy.nn._functional.losses import cross_entropy, mse_loss, nll_loss
from torchemu.frontends.numpy.nn._functional.normalization import layer_norm

__all__ = [
    "cross_entropy",
    "dropout",
    "embedding",
    "gelu",
    "layer_norm",
    "linear",
    "log_softmax",
    "mse_loss",
    "nll_loss",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "tanh",
]

__getattr__ = lacks(__name__)
