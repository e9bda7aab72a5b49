"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.run import config_from_args as config_from_args
from torchemu.frontends.numpy.distributed.run import determine_local_world_size as determine_local_world_size
from torchemu.frontends.numpy.distributed.run import get_args_parser as get_args_parser
from torchemu.frontends.numpy.distributed.run import get_use_env as get_use_env
from torchemu.frontends.numpy.distributed.run import main as main
from torchemu.frontends.numpy.distributed.run import parse_args as parse_args
from torchemu.frontends.numpy.distributed.run import parse_min_max_nnodes as parse_min_max_nnodes
from torchemu.frontends.numpy.distributed.run import run as run

