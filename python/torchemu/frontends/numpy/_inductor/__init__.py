"""torch._inductor: of the compiler what programs set."""

from torchemu.frontends.numpy._inductor import config

__all__ = ["config"]
