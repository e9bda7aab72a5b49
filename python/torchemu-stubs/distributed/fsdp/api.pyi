"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.fsdp.api import BackwardPrefetch as BackwardPrefetch
from torchemu.frontends.numpy.distributed.fsdp.api import CPUOffload as CPUOffload
from torchemu.frontends.numpy.distributed.fsdp.api import FullOptimStateDictConfig as FullOptimStateDictConfig
from torchemu.frontends.numpy.distributed.fsdp.api import FullStateDictConfig as FullStateDictConfig
from torchemu.frontends.numpy.distributed.fsdp.api import LocalOptimStateDictConfig as LocalOptimStateDictConfig
from torchemu.frontends.numpy.distributed.fsdp.api import LocalStateDictConfig as LocalStateDictConfig
from torchemu.frontends.numpy.distributed.fsdp.api import MixedPrecision as MixedPrecision
from torchemu.frontends.numpy.distributed.fsdp.api import OptimStateDictConfig as OptimStateDictConfig
from torchemu.frontends.numpy.distributed.fsdp.api import ShardedOptimStateDictConfig as ShardedOptimStateDictConfig
from torchemu.frontends.numpy.distributed.fsdp.api import ShardedStateDictConfig as ShardedStateDictConfig
from torchemu.frontends.numpy.distributed.fsdp.api import ShardingStrategy as ShardingStrategy
from torchemu.frontends.numpy.distributed.fsdp.api import StateDictConfig as StateDictConfig
from torchemu.frontends.numpy.distributed.fsdp.api import StateDictSettings as StateDictSettings
from torchemu.frontends.numpy.distributed.fsdp.api import StateDictType as StateDictType

