"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.loss import CrossEntropyLoss as CrossEntropyLoss
from torchemu.frontends.numpy.nn.modules.loss import MSELoss as MSELoss
from torchemu.frontends.numpy.nn.modules.loss import NLLLoss as NLLLoss

