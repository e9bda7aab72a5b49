"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.futures import Future as Future
from torchemu.frontends.numpy.futures import collect_all as collect_all
from torchemu.frontends.numpy.futures import wait_all as wait_all

