"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.checkpoint.default_planner import DefaultLoadPlanner as DefaultLoadPlanner
from torchemu.frontends.numpy.distributed.checkpoint.default_planner import DefaultSavePlanner as DefaultSavePlanner

