"""megatron.core.distributed.finalize_model_grads."""

from torchemu.tp.gradients import finalize_model_grads as finalize_model_grads
