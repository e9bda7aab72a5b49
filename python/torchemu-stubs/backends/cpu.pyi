"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.backends.cpu import get_cpu_capability as get_cpu_capability

