"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.optim.adaptive import Adadelta as Adadelta
from torchemu.frontends.numpy.optim.adaptive import Adagrad as Adagrad
from torchemu.frontends.numpy.optim.adaptive import RMSprop as RMSprop

