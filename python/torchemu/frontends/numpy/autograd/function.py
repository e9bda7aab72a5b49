"""torch.autograd.function."""

from torchemu.frontends.numpy._autograd.function import BackwardFunction, Function, FunctionCtx

__all__ = ["BackwardFunction", "Function", "FunctionCtx"]
