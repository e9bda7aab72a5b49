"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.amp.autocast_mode import autocast as autocast
from torchemu.frontends.numpy.amp.autocast_mode import custom_bwd as custom_bwd
from torchemu.frontends.numpy.amp.autocast_mode import custom_fwd as custom_fwd
from torchemu.frontends.numpy.amp.autocast_mode import is_autocast_available as is_autocast_available
from torchemu.frontends.numpy.amp.grad_scaler import GradScaler as GradScaler

