"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy._safe_globals import add_safe_globals as add_safe_globals
from torchemu.frontends.numpy._safe_globals import clear_safe_globals as clear_safe_globals
from torchemu.frontends.numpy._safe_globals import get_safe_globals as get_safe_globals
from torchemu.frontends.numpy._safe_globals import safe_globals as safe_globals
from torchemu.frontends.numpy.serialization import load as load
from torchemu.frontends.numpy.serialization import save as save

