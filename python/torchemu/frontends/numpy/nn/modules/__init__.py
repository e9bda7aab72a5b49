"""torch.nn.modules: the modules, each kind in a module of its own."""

# ruff: noqa: F403 (each module's __all__ says what there is)

from torchemu.frontends.numpy.nn.modules import (
    activation,
    attention,
    batchnorm,
    container,
    convolution,
    distance,
    dropout,
    lazy,
    linear,
    loss,
    margins,
    normalization,
    padding,
    pooling,
    rectifiers,
    resizing,
    rnn,
    sparse,
    transformer,
)
from torchemu.frontends.numpy.nn.modules.activation import *
from torchemu.frontends.numpy.nn.modules.attention import *
from torchemu.frontends.numpy.nn.modules.batchnorm import *
from torchemu.frontends.numpy.nn.modules.container import *
from torchemu.frontends.numpy.nn.modules.convolution import *
from torchemu.frontends.numpy.nn.modules.distance import *
from torchemu.frontends.numpy.nn.modules.dropout import *
from torchemu.frontends.numpy.nn.modules.lazy import *
from torchemu.frontends.numpy.nn.modules.linear import *
from torchemu.frontends.numpy.nn.modules.loss import *
from torchemu.frontends.numpy.nn.modules.margins import *
from torchemu.frontends.numpy.nn.modules.module import Module as Module
from torchemu.frontends.numpy.nn.modules.normalization import *
from torchemu.frontends.numpy.nn.modules.padding import *
from torchemu.frontends.numpy.nn.modules.pooling import *
from torchemu.frontends.numpy.nn.modules.rectifiers import *
from torchemu.frontends.numpy.nn.modules.resizing import *
from torchemu.frontends.numpy.nn.modules.rnn import *
from torchemu.frontends.numpy.nn.modules.sparse import *
from torchemu.frontends.numpy.nn.modules.transformer import *

__all__ = ["Module"]
__all__ += activation.__all__
__all__ += attention.__all__
__all__ += batchnorm.__all__
__all__ += container.__all__
__all__ += convolution.__all__
__all__ += distance.__all__
__all__ += dropout.__all__
__all__ += lazy.__all__
__all__ += linear.__all__
__all__ += loss.__all__
__all__ += normalization.__all__
__all__ += margins.__all__
__all__ += padding.__all__
__all__ += resizing.__all__
__all__ += pooling.__all__
__all__ += rectifiers.__all__
__all__ += rnn.__all__
__all__ += sparse.__all__
__all__ += transformer.__all__
