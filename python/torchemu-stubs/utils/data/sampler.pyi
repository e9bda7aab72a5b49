"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.utils.data.sampler import BatchSampler as BatchSampler
from torchemu.frontends.numpy.utils.data.sampler import RandomSampler as RandomSampler
from torchemu.frontends.numpy.utils.data.sampler import Sampler as Sampler
from torchemu.frontends.numpy.utils.data.sampler import SequentialSampler as SequentialSampler
from torchemu.frontends.numpy.utils.data.sampler import SubsetRandomSampler as SubsetRandomSampler
from torchemu.frontends.numpy.utils.data.sampler import WeightedRandomSampler as WeightedRandomSampler

