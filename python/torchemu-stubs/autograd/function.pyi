"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy._autograd.function import BackwardFunction as BackwardFunction
from torchemu.frontends.numpy._autograd.function import Function as Function
from torchemu.frontends.numpy._autograd.function import FunctionCtx as FunctionCtx

