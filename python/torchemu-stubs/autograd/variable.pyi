"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.autograd.variable import Variable as Variable

