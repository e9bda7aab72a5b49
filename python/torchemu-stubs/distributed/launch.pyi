"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.launch import launch as launch
from torchemu.frontends.numpy.distributed.launch import main as main
from torchemu.frontends.numpy.distributed.launch import parse_args as parse_args
from torchemu.frontends.numpy.distributed.run import get_args_parser as get_args_parser
from torchemu.frontends.numpy.distributed.run import run as run

