"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.profiler._profile import profile as profile
from torchemu.profile.annotation import record_function as record_function

