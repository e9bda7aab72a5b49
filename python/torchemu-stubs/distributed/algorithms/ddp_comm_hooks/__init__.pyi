"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.algorithms.ddp_comm_hooks import default_hooks as default_hooks
from torchemu.frontends.numpy.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powerSGD_hook

