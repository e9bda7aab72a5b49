"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.launcher.api import LaunchConfig as LaunchConfig
from torchemu.frontends.numpy.distributed.launcher.api import elastic_launch as elastic_launch
from torchemu.frontends.numpy.distributed.launcher.api import launch_agent as launch_agent

