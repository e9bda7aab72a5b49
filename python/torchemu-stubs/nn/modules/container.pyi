"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.container import ModuleList as ModuleList
from torchemu.frontends.numpy.nn.modules.container import Sequential as Sequential

