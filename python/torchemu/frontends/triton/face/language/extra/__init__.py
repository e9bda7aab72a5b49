"""Functions of particular devices."""

from torchemu.frontends.triton._placeholders import placeholders
from torchemu.frontends.triton.face.language.extra import cuda, libdevice

__all__ = ["cuda", "libdevice"]

__getattr__ = placeholders("triton.language.extra", is_package=True)
