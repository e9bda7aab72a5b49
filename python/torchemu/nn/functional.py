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
from torchemu.nn._functional.distances import (
    cosine_embedding_loss,
    cosine_similarity,
    hinge_embedding_loss,
    huber_loss,
    margin_ranking_loss,
    normalize,
    pairwise_distance,
    smooth_l1_loss,
    soft_margin_loss,
    triplet_margin_loss,
)
from torchemu.nn._functional.dropout import (
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
)
from torchemu.nn._functional.embedding import embedding, one_hot
from torchemu.nn._functional.likelihoods import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    kl_div,
)
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
from torchemu.nn._functional.rectifiers import (
    celu,
    elu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    logsigmoid,
    mish,
    prelu,
    relu6,
    selu,
    softmin,
    softshrink,
    softsign,
    tanhshrink,
    threshold,
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
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "embedding",
    "gelu",
    "glu",
    "group_norm",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "mish",
    "mse_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "prelu",
    "relu",
    "relu6",
    "rms_norm",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "triplet_margin_loss",
]

__getattr__ = unsupported_names("torch.nn.functional", FUNCTIONS, INSTEAD)
