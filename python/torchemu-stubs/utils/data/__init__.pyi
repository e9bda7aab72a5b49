"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.utils.data._collate import default_collate as default_collate
from torchemu.frontends.numpy.utils.data._collate import default_convert as default_convert
from torchemu.frontends.numpy.utils.data.dataloader import DataLoader as DataLoader
from torchemu.frontends.numpy.utils.data.dataloader import get_worker_info as get_worker_info
from torchemu.frontends.numpy.utils.data.dataset import ChainDataset as ChainDataset
from torchemu.frontends.numpy.utils.data.dataset import ConcatDataset as ConcatDataset
from torchemu.frontends.numpy.utils.data.dataset import Dataset as Dataset
from torchemu.frontends.numpy.utils.data.dataset import IterableDataset as IterableDataset
from torchemu.frontends.numpy.utils.data.dataset import StackDataset as StackDataset
from torchemu.frontends.numpy.utils.data.dataset import Subset as Subset
from torchemu.frontends.numpy.utils.data.dataset import TensorDataset as TensorDataset
from torchemu.frontends.numpy.utils.data.dataset import random_split as random_split
from torchemu.frontends.numpy.utils.data.distributed import DistributedSampler as DistributedSampler
from torchemu.frontends.numpy.utils.data.sampler import BatchSampler as BatchSampler
from torchemu.frontends.numpy.utils.data.sampler import RandomSampler as RandomSampler
from torchemu.frontends.numpy.utils.data.sampler import Sampler as Sampler
from torchemu.frontends.numpy.utils.data.sampler import SequentialSampler as SequentialSampler
from torchemu.frontends.numpy.utils.data.sampler import SubsetRandomSampler as SubsetRandomSampler
from torchemu.frontends.numpy.utils.data.sampler import WeightedRandomSampler as WeightedRandomSampler

