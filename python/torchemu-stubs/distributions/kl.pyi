"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributions.kl import kl_divergence as kl_divergence

