"""triton.backends, as far as programs import it."""

from torchemu.frontends.triton._placeholders import placeholders

__getattr__ = placeholders("triton.backends")
