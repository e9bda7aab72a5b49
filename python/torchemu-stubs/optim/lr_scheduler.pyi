"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.optim._cycles import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts
from torchemu.frontends.numpy.optim._cycles import CyclicLR as CyclicLR
from torchemu.frontends.numpy.optim._cycles import OneCycleLR as OneCycleLR
from torchemu.frontends.numpy.optim._cycles import PolynomialLR as PolynomialLR
from torchemu.frontends.numpy.optim._plateau import ReduceLROnPlateau as ReduceLROnPlateau
from torchemu.frontends.numpy.optim._schedule import LRScheduler as LRScheduler
from torchemu.frontends.numpy.optim.lr_scheduler import ChainedScheduler as ChainedScheduler
from torchemu.frontends.numpy.optim.lr_scheduler import ConstantLR as ConstantLR
from torchemu.frontends.numpy.optim.lr_scheduler import CosineAnnealingLR as CosineAnnealingLR
from torchemu.frontends.numpy.optim.lr_scheduler import ExponentialLR as ExponentialLR
from torchemu.frontends.numpy.optim.lr_scheduler import LambdaLR as LambdaLR
from torchemu.frontends.numpy.optim.lr_scheduler import LinearLR as LinearLR
from torchemu.frontends.numpy.optim.lr_scheduler import MultiStepLR as MultiStepLR
from torchemu.frontends.numpy.optim.lr_scheduler import MultiplicativeLR as MultiplicativeLR
from torchemu.frontends.numpy.optim.lr_scheduler import SequentialLR as SequentialLR
from torchemu.frontends.numpy.optim.lr_scheduler import StepLR as StepLR

