"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState as PowerSGDState
from torchemu.frontends.numpy.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import batched_powerSGD_hook as batched_powerSGD_hook
from torchemu.frontends.numpy.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import powerSGD_hook as powerSGD_hook

