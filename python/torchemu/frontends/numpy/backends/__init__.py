"""torch.backends: switches of libraries that are not used here. Programs may set them; nothing changes."""

from torchemu.frontends.numpy._absent import modules_below
from torchemu.frontends.numpy.backends import cpu, cuda, cudnn

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]

globals().update(modules_below(__name__))
