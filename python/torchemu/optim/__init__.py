"""torch.optim: optimizers, and schedules of their learning rates."""

from torchemu._unsupported import unsupported_names
from torchemu.nn._missing import INSTEAD, OPTIMIZERS
from torchemu.optim import lr_scheduler, optimizer
from torchemu.optim.adam import Adam, AdamW
from torchemu.optim.adaptive import Adadelta, Adagrad, RMSprop
from torchemu.optim.optimizer import Optimizer
from torchemu.optim.sgd import SGD

__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler", "optimizer"]

__getattr__ = unsupported_names("torch.optim", OPTIMIZERS, INSTEAD)
