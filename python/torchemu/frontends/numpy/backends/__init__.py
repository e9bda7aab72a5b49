"""torch.backends: switches of libraries that are not used here. Programs may set them; nothing changes."""

from torchemu.frontends.numpy.backends import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]
