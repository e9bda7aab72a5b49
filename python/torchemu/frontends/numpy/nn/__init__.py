"""torch.nn: modules with parameters to learn, and the functions that they calculate with."""

# ruff: noqa: F403 (torchemu.nn.modules.__all__ says what there is)

from torchemu.frontends.numpy.nn import functional, init, modules, parallel, parameter, utils
from torchemu.frontends.numpy.nn._missing import INSTEAD, MODULES
from torchemu.frontends.numpy.nn.modules import *
from torchemu.frontends.numpy.nn.parallel import DataParallel
from torchemu.frontends.numpy.nn.parameter import (
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)
from torchemu.unsupported import unsupported_names

__all__ = [
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
    "modules",
    "parallel",
    "parameter",
    "utils",
]
__all__ += modules.__all__

__getattr__ = unsupported_names("torch.nn", MODULES, INSTEAD)
