"""torch.distributed.algorithms.ddp_comm_hooks: how DistributedDataParallel may average gradients."""

from torchemu.frontends.numpy.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

__all__ = ["default_hooks", "powerSGD_hook"]
