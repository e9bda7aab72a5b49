"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributions.families import Bernoulli as Bernoulli
from torchemu.frontends.numpy.distributions.families import Categorical as Categorical
from torchemu.frontends.numpy.distributions.families import Exponential as Exponential
from torchemu.frontends.numpy.distributions.families import Independent as Independent
from torchemu.frontends.numpy.distributions.families import Laplace as Laplace
from torchemu.frontends.numpy.distributions.families import Normal as Normal
from torchemu.frontends.numpy.distributions.families import Uniform as Uniform

