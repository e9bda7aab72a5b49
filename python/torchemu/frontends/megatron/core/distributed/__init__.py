"""megatron.core.distributed: what is done with gradients after the backward pass."""

from torchemu.tp.gradients import finalize_model_grads as finalize_model_grads
