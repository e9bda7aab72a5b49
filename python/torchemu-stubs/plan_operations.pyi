"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends import numpy as torch
from torchemu.frontends.numpy import distributed as dist
from torchemu.frontends.numpy._tensor.core import Tensor as Tensor
from torchemu.frontends.numpy.distributed._groups import ProcessGroup as ProcessGroup
from torchemu.frontends.numpy.nn._functional.embedding import EMBEDDING_BACKWARD as EMBEDDING_BACKWARD
from torchemu.frontends.numpy.nn._functional.embedding import embedding as embedding
from torchemu.frontends.numpy.nn._functional.linear import linear as linear
from torchemu.frontends.numpy.plan_operations import Operations as Operations

