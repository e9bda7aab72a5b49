"""triton.runtime.jit, as far as programs import it."""

from torchemu.frontends.triton._jit import JITFunction, KernelInterface, jit
from torchemu.frontends.triton._placeholders import placeholders

__all__ = ["JITFunction", "KernelInterface", "jit"]

__getattr__ = placeholders("triton.runtime.jit")
