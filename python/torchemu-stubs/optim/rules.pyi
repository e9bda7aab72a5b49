"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.optim.rules import ASGD as ASGD
from torchemu.frontends.numpy.optim.rules import Adafactor as Adafactor
from torchemu.frontends.numpy.optim.rules import Muon as Muon
from torchemu.frontends.numpy.optim.rules import Rprop as Rprop

