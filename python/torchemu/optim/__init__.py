"""torch.optim: optimizers, and schedules of their learning rates."""

from torchemu._unsupported import unsupported_names
from torchemu.nn._missing import INSTEAD, OPTIMIZERS
from torchemu.optim import lr_scheduler, optimizer, swa_utils
from torchemu.optim.adam import Adam, AdamW
from torchemu.optim.adaptive import Adadelta, Adagrad, RMSprop
from torchemu.optim.lbfgs import LBFGS
from torchemu.optim.moments import Adamax, NAdam, RAdam
from torchemu.optim.optimizer import Optimizer
from torchemu.optim.rules import ASGD, Adafactor, Muon, Rprop
from torchemu.optim.sgd import SGD

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
