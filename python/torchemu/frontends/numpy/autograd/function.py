"""torch.autograd.function."""

from torchemu.frontends.numpy._autograd.function import BackwardFunction, Function, FunctionCtx, once_differentiable

__all__ = ["BackwardFunction", "Function", "FunctionCtx", "once_differentiable"]
