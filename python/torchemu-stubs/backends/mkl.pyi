"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.backends.mkl import is_available as is_available

