"""torch.nn: modules with parameters to learn, and the functions that they calculate with."""

# ruff: noqa: F403 (torchemu.nn.modules.__all__ says what there is)

from torchemu.frontends.numpy._absent import lacks
from torchemu.frontends.numpy.nn import functional, init, modules, parameter
from torchemu.frontends.numpy.nn.modules import *
from torchemu.frontends.numpy.nn.parameter import Parameter

__all__ = ["Parameter", "functional", "init", "modules", "parameter"]
__all__ += modules.__all__

__getattr__ = lacks(__name__)
