"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.container import ModuleDict as ModuleDict
from torchemu.frontends.numpy.nn.modules.container import ModuleList as ModuleList
from torchemu.frontends.numpy.nn.modules.container import ParameterDict as ParameterDict
from torchemu.frontends.numpy.nn.modules.container import ParameterList as ParameterList
from torchemu.frontends.numpy.nn.modules.container import Sequential as Sequential

