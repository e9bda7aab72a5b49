"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributions.distribution import Distribution as Distribution

