"""megatron.core: parallel state and tensor parallelism."""

from torchemu.frontends.megatron.core import parallel_state, tensor_parallel, utils
from torchemu.tp import ModelParallelConfig

mpu = parallel_state

__all__ = ["ModelParallelConfig", "mpu", "parallel_state", "tensor_parallel", "utils"]
