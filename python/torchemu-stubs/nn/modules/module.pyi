"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules._state import _IncompatibleKeys as _IncompatibleKeys
from torchemu.frontends.numpy.nn.modules.module import Module as Module

