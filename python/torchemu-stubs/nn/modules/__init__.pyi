"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.activation import GELU as GELU
from torchemu.frontends.numpy.nn.modules.activation import ReLU as ReLU
from torchemu.frontends.numpy.nn.modules.activation import Tanh as Tanh
from torchemu.frontends.numpy.nn.modules.container import ModuleList as ModuleList
from torchemu.frontends.numpy.nn.modules.container import Sequential as Sequential
from torchemu.frontends.numpy.nn.modules.dropout import Dropout as Dropout
from torchemu.frontends.numpy.nn.modules.linear import Linear as Linear
from torchemu.frontends.numpy.nn.modules.loss import CrossEntropyLoss as CrossEntropyLoss
from torchemu.frontends.numpy.nn.modules.loss import MSELoss as MSELoss
from torchemu.frontends.numpy.nn.modules.loss import NLLLoss as NLLLoss
from torchemu.frontends.numpy.nn.modules.module import Module as Module
from torchemu.frontends.numpy.nn.modules.normalization import LayerNorm as LayerNorm
from torchemu.frontends.numpy.nn.modules.sparse import Embedding as Embedding

