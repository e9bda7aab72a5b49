"""torch.nn.modules: the modules, each kind in a module of its own."""

# ruff: noqa: F403 (each module's __all__ says what there is)

from torchemu.frontends.numpy._absent import lacks
from torchemu.frontends.numpy.nn.modules import (
    activation,
    container,
    dropout,
    linear,
    loss,
    normalization,
    sparse,
)
from torchemu.frontends.numpy.nn.modules.activation import *
from torchemu.frontends.numpy.nn.modules.container import *
from torchemu.frontends.numpy.nn.modules.dropout import *
from torchemu.frontends.numpy.nn.modules.linear import *
from torchemu.frontends.numpy.nn.modules.loss import *
from torchemu.frontends.numpy.nn.modules.module import Module as Module
from torchemu.frontends.numpy.nn.modules.normalization import *
from torchemu.frontends.numpy.nn.modules.sparse import *

__all__ = ["Module"]
__all__ += activation.__all__
__all__ += container.__all__
__all__ += dropout.__all__
__all__ += linear.__all__
__all__ += loss.__all__
__all__ += normalization.__all__
__all__ += sparse.__all__

__getattr__ = lacks(__name__)
