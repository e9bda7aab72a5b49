"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.utils.data.distributed import DistributedSampler as DistributedSampler

