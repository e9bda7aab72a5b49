"""Functions of NVIDIA's devices."""

from torchemu.frontends.triton._placeholders import placeholders
from torchemu.frontends.triton._threads import globaltimer, num_threads, num_warps, smid
from torchemu.frontends.triton.face.language.extra.cuda import libdevice

__all__ = ["globaltimer", "libdevice", "num_threads", "num_warps", "smid"]


__getattr__ = placeholders("triton.language.extra.cuda", is_package=True)
