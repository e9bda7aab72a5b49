"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.language.kernels import ring as ring
from torchemu.language.kernels import shots as shots

