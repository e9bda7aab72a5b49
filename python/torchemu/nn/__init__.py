"""torch.nn: modules with parameters to learn, and the functions that they calculate with."""

# ruff: noqa: F403 (torchemu.nn.modules.__all__ says what there is)

from torchemu._unsupported import unsupported_names
from torchemu.nn import functional, init, modules, parallel, parameter, utils
from torchemu.nn._missing import INSTEAD, MODULES
from torchemu.nn.modules import *
from torchemu.nn.parallel import DataParallel
from torchemu.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

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
