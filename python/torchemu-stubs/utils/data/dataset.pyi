"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.utils.data.dataset import ChainDataset as ChainDataset
from torchemu.frontends.numpy.utils.data.dataset import ConcatDataset as ConcatDataset
from torchemu.frontends.numpy.utils.data.dataset import Dataset as Dataset
from torchemu.frontends.numpy.utils.data.dataset import IterableDataset as IterableDataset
from torchemu.frontends.numpy.utils.data.dataset import StackDataset as StackDataset
from torchemu.frontends.numpy.utils.data.dataset import Subset as Subset
from torchemu.frontends.numpy.utils.data.dataset import TensorDataset as TensorDataset
from torchemu.frontends.numpy.utils.data.dataset import random_split as random_split

