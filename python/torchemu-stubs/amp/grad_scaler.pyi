"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.amp.grad_scaler import GradScaler as GradScaler
from torchemu.frontends.numpy.amp.grad_scaler import OptState as OptState

