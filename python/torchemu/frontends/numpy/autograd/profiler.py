"""torch.autograd.profiler: what torch.profiler has come from, by its older names."""

from torchemu.frontends.numpy.profiler import profile, record_function

__all__ = ["profile", "record_function"]
