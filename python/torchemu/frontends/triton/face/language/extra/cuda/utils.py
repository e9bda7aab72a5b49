"""Questions about a kernel's launch."""

from torchemu.frontends.triton._threads import globaltimer, num_threads, num_warps, smid

__all__ = ["globaltimer", "num_threads", "num_warps", "smid"]
