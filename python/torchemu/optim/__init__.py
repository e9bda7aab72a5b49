"""torch.optim: optimizers, and schedules of their learning rates."""

from torchemu._unsupported import unsupported_names
from torchemu.nn._missing import INSTEAD, OPTIMIZERS
from torchemu.optim import lr_scheduler, optimizer
from torchemu.optim.adam import Adam, AdamW
from torchemu.optim.optimizer import Optimizer
from torchemu.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "lr_scheduler", "optimizer"]

__getattr__ = unsupported_names("torch.optim", OPTIMIZERS, INSTEAD)
