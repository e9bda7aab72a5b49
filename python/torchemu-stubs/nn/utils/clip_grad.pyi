"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy._grad_mode import no_grad as no_grad
from torchemu.frontends.numpy._tensor.core import Tensor as Tensor
from torchemu.frontends.numpy._tensor.creation import zeros as zeros
from torchemu.frontends.numpy._tensor.joining import stack as stack
from torchemu.frontends.numpy.nn.utils.clip_grad import clip_grad_norm as clip_grad_norm
from torchemu.frontends.numpy.nn.utils.clip_grad import clip_grad_norm_ as clip_grad_norm_
from torchemu.frontends.numpy.nn.utils.clip_grad import clip_grad_value_ as clip_grad_value_
from torchemu.frontends.numpy.nn.utils.clip_grad import clip_grads_with_norm_ as clip_grads_with_norm_
from torchemu.frontends.numpy.nn.utils.clip_grad import get_total_norm as get_total_norm

