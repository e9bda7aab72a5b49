"""torch._dynamo: of the compiler what programs name. Nothing is compiled: what they compute is the same."""

from torchemu.frontends.numpy._dynamo import config
from torchemu.frontends.numpy._dynamo.eval_frame import OptimizedModule
from torchemu.frontends.numpy.compiler import disable, is_compiling, reset

__all__ = ["OptimizedModule", "config", "disable", "is_compiling", "reset"]
