"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.parallel.parallel_apply import get_a_var as get_a_var
from torchemu.frontends.numpy.nn.parallel.parallel_apply import parallel_apply as parallel_apply

