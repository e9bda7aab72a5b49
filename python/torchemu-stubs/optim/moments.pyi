"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.optim.moments import Adamax as Adamax
from torchemu.frontends.numpy.optim.moments import NAdam as NAdam
from torchemu.frontends.numpy.optim.moments import RAdam as RAdam

