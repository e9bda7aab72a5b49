"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy._autograd.node import Node as Node
from torchemu.frontends.numpy._autograd.variable import Edge as GradientEdge
from torchemu.frontends.numpy.autograd.graph import disable_saved_tensors_hooks as disable_saved_tensors_hooks
from torchemu.frontends.numpy.autograd.graph import get_gradient_edge as get_gradient_edge
from torchemu.frontends.numpy.autograd.graph import increment_version as increment_version
from torchemu.frontends.numpy.autograd.graph import save_on_cpu as save_on_cpu
from torchemu.frontends.numpy.autograd.graph import saved_tensors_hooks as saved_tensors_hooks

