"""megatron.core.model_parallel_config."""

from torchemu.tp.config import ModelParallelConfig as ModelParallelConfig
