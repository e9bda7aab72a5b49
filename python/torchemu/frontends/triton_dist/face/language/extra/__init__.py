"""Functions of threads, and of shared memory between ranks."""

from torchemu.frontends.triton_dist.face.language.extra import language_extra, libshmem_device

__all__ = ["language_extra", "libshmem_device"]
