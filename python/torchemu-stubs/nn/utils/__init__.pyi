"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.utils import clip_grad as clip_grad
from torchemu.frontends.numpy.nn.utils import convert_parameters as convert_parameters
from torchemu.frontends.numpy.nn.utils import parametrizations as parametrizations
from torchemu.frontends.numpy.nn.utils import parametrize as parametrize
from torchemu.frontends.numpy.nn.utils import rnn as rnn
from torchemu.frontends.numpy.nn.utils import stateless as stateless
from torchemu.frontends.numpy.nn.utils._renewed import remove_spectral_norm as remove_spectral_norm
from torchemu.frontends.numpy.nn.utils._renewed import remove_weight_norm as remove_weight_norm
from torchemu.frontends.numpy.nn.utils._renewed import skip_init as skip_init
from torchemu.frontends.numpy.nn.utils._renewed import spectral_norm as spectral_norm
from torchemu.frontends.numpy.nn.utils._renewed import weight_norm as weight_norm
from torchemu.frontends.numpy.nn.utils.clip_grad import clip_grad_norm as clip_grad_norm
from torchemu.frontends.numpy.nn.utils.clip_grad import clip_grad_norm_ as clip_grad_norm_
from torchemu.frontends.numpy.nn.utils.clip_grad import clip_grad_value_ as clip_grad_value_
from torchemu.frontends.numpy.nn.utils.clip_grad import clip_grads_with_norm_ as clip_grads_with_norm_
from torchemu.frontends.numpy.nn.utils.clip_grad import get_total_norm as get_total_norm
from torchemu.frontends.numpy.nn.utils.convert_parameters import parameters_to_vector as parameters_to_vector
from torchemu.frontends.numpy.nn.utils.convert_parameters import vector_to_parameters as vector_to_parameters

