"""What programs import of Triton's tools."""

from torchemu.frontends.triton._placeholders import placeholders

__getattr__ = placeholders("triton.tools", is_package=True)
