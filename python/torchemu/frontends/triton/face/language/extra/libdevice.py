"""Functions of elements, as ``triton.language.extra.libdevice``."""

from torchemu.frontends.triton._libdevice import FUNCTIONS
from torchemu.frontends.triton._placeholders import placeholders
from torchemu.frontends.triton.face.language.math import *  # noqa: F403

globals().update(FUNCTIONS)

__getattr__ = placeholders("triton.language.extra.libdevice")
