"""torch._inductor: of the compiler what programs set."""

from torchemu._inductor import config

__all__ = ["config"]
