"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.algorithms.join import Join as Join
from torchemu.frontends.numpy.distributed.algorithms.join import JoinHook as JoinHook
from torchemu.frontends.numpy.distributed.algorithms.join import Joinable as Joinable

