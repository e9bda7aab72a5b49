"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.optim import lr_scheduler as lr_scheduler
from torchemu.frontends.numpy.optim import optimizer as optimizer
from torchemu.frontends.numpy.optim import swa_utils as swa_utils
from torchemu.frontends.numpy.optim.adam import Adam as Adam
from torchemu.frontends.numpy.optim.adam import AdamW as AdamW
from torchemu.frontends.numpy.optim.adaptive import Adadelta as Adadelta
from torchemu.frontends.numpy.optim.adaptive import Adagrad as Adagrad
from torchemu.frontends.numpy.optim.adaptive import RMSprop as RMSprop
from torchemu.frontends.numpy.optim.lbfgs import LBFGS as LBFGS
from torchemu.frontends.numpy.optim.moments import Adamax as Adamax
from torchemu.frontends.numpy.optim.moments import NAdam as NAdam
from torchemu.frontends.numpy.optim.moments import RAdam as RAdam
from torchemu.frontends.numpy.optim.optimizer import Optimizer as Optimizer
from torchemu.frontends.numpy.optim.rules import ASGD as ASGD
from torchemu.frontends.numpy.optim.rules import Adafactor as Adafactor
from torchemu.frontends.numpy.optim.rules import Muon as Muon
from torchemu.frontends.numpy.optim.rules import Rprop as Rprop
from torchemu.frontends.numpy.optim.sgd import SGD as SGD

