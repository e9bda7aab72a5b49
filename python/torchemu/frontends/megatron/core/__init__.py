"""megatron.core: parallel state and tensor parallelism, which are torchemu.tp's modules; see front_end.py."""

from torchemu import tp as tensor_parallel
from torchemu.tp import parallel_state, utils
from torchemu.tp.config import ModelParallelConfig

mpu = parallel_state

__all__ = ["ModelParallelConfig", "mpu", "parallel_state", "tensor_parallel", "utils"]
