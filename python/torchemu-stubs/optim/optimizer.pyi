"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.optim.optimizer import Optimizer as Optimizer

