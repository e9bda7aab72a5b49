"""torch.optim: optimizers, and schedules of their learning rates."""

from torchemu.frontends.numpy.nn._missing import INSTEAD, OPTIMIZERS
from torchemu.frontends.numpy.optim import lr_scheduler, optimizer, swa_utils
from torchemu.frontends.numpy.optim.adam import Adam, AdamW
from torchemu.frontends.numpy.optim.adaptive import Adadelta, Adagrad, RMSprop
from torchemu.frontends.numpy.optim.lbfgs import LBFGS
from torchemu.frontends.numpy.optim.moments import Adamax, NAdam, RAdam
from torchemu.frontends.numpy.optim.optimizer import Optimizer
from torchemu.frontends.numpy.optim.rules import ASGD, Adafactor, Muon, Rprop
from torchemu.frontends.numpy.optim.sgd import SGD
from torchemu.unsupported import unsupported_names

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
    "optimizer",
    "swa_utils",
]

__getattr__ = unsupported_names("torch.optim", OPTIMIZERS, INSTEAD)
