"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.optim import optimizer as optimizer
from torchemu.frontends.numpy.optim.adam import Adam as Adam
from torchemu.frontends.numpy.optim.adam import AdamW as AdamW
from torchemu.frontends.numpy.optim.optimizer import Optimizer as Optimizer
from torchemu.frontends.numpy.optim.sgd import SGD as SGD

