"""torch.optim: optimizers."""

from torchemu.frontends.numpy._absent import lacks
from torchemu.frontends.numpy.optim import optimizer
from torchemu.frontends.numpy.optim.adam import Adam, AdamW
from torchemu.frontends.numpy.optim.optimizer import Optimizer
from torchemu.frontends.numpy.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "optimizer"]

__getattr__ = lacks(__name__)
