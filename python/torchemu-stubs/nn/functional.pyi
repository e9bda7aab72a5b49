"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy._tensor.elementwise import sigmoid as sigmoid
from torchemu.frontends.numpy._tensor.elementwise import tanh as tanh
from torchemu.frontends.numpy._tensor.parametric import gelu as gelu
from torchemu.frontends.numpy.nn._functional.activation import log_softmax as log_softmax
from torchemu.frontends.numpy.nn._functional.activation import relu as relu
from torchemu.frontends.numpy.nn._functional.activation import silu as silu
from torchemu.frontends.numpy.nn._functional.activation import softmax as softmax
from torchemu.frontends.numpy.nn._functional.dropout import dropout as dropout
from torchemu.frontends.numpy.nn._functional.embedding import embedding as embedding
from torchemu.frontends.numpy.nn._functional.linear import linear as linear
from torchemu.frontends.numpy.nn._functional.losses import cross_entropy as cross_entropy
from torchemu.frontends.numpy.nn._functional.losses import mse_loss as mse_loss
from torchemu.frontends.numpy.nn._functional.losses import nll_loss as nll_loss
from torchemu.frontends.numpy.nn._functional.normalization import layer_norm as layer_norm

