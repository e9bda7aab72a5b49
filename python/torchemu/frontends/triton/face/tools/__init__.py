"""Names of Triton's tools that programs import."""

from torchemu.frontends.triton._placeholders import placeholders

__getattr__ = placeholders("triton.tools", is_package=True)
