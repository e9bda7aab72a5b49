"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy._tensor.core import Tensor as Tensor
from torchemu.frontends.numpy._tensor.joining import cat as cat
from torchemu.frontends.numpy.nn.utils.convert_parameters import parameters_to_vector as parameters_to_vector
from torchemu.frontends.numpy.nn.utils.convert_parameters import vector_to_parameters as vector_to_parameters

