"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.utils.parametrize import ParametrizationList as ParametrizationList
from torchemu.frontends.numpy.nn.utils.parametrize import cached as cached
from torchemu.frontends.numpy.nn.utils.parametrize import is_parametrized as is_parametrized
from torchemu.frontends.numpy.nn.utils.parametrize import register_parametrization as register_parametrization
from torchemu.frontends.numpy.nn.utils.parametrize import remove_parametrizations as remove_parametrizations
from torchemu.frontends.numpy.nn.utils.parametrize import transfer_parametrizations_and_params as transfer_parametrizations_and_params
from torchemu.frontends.numpy.nn.utils.parametrize import type_before_parametrizations as type_before_parametrizations

