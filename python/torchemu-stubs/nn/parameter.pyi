"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.parameter import Parameter as Parameter

