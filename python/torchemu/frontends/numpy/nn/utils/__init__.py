"""torch.nn.utils: what is done with gradients and parameters all together."""

from torchemu.frontends.numpy.nn._missing import INSTEAD, OF_PARAMETERS
from torchemu.frontends.numpy.nn.utils import (
    clip_grad,
    convert_parameters,
    parametrizations,
    parametrize,
    rnn,
    stateless,
)
from torchemu.frontends.numpy.nn.utils._renewed import (
    remove_spectral_norm,
    remove_weight_norm,
    skip_init,
    spectral_norm,
    weight_norm,
)
from torchemu.frontends.numpy.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from torchemu.frontends.numpy.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from torchemu.unsupported import unsupported_names

__all__ = [
    "clip_grad",
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "convert_parameters",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]

__getattr__ = unsupported_names("torch.nn.utils", OF_PARAMETERS, INSTEAD)
