"""CUDA's C functions."""

from torchemu.frontends.triton_dist.cuda.bindings import driver, runtime

__all__ = ["driver", "runtime"]
