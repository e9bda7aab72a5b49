"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.rectifiers import CELU as CELU
from torchemu.frontends.numpy.nn.modules.rectifiers import ELU as ELU
from torchemu.frontends.numpy.nn.modules.rectifiers import GLU as GLU
from torchemu.frontends.numpy.nn.modules.rectifiers import Hardshrink as Hardshrink
from torchemu.frontends.numpy.nn.modules.rectifiers import Hardsigmoid as Hardsigmoid
from torchemu.frontends.numpy.nn.modules.rectifiers import Hardswish as Hardswish
from torchemu.frontends.numpy.nn.modules.rectifiers import Hardtanh as Hardtanh
from torchemu.frontends.numpy.nn.modules.rectifiers import LeakyReLU as LeakyReLU
from torchemu.frontends.numpy.nn.modules.rectifiers import LogSigmoid as LogSigmoid
from torchemu.frontends.numpy.nn.modules.rectifiers import Mish as Mish
from torchemu.frontends.numpy.nn.modules.rectifiers import PReLU as PReLU
from torchemu.frontends.numpy.nn.modules.rectifiers import RReLU as RReLU
from torchemu.frontends.numpy.nn.modules.rectifiers import ReLU6 as ReLU6
from torchemu.frontends.numpy.nn.modules.rectifiers import SELU as SELU
from torchemu.frontends.numpy.nn.modules.rectifiers import Softmax2d as Softmax2d
from torchemu.frontends.numpy.nn.modules.rectifiers import Softmin as Softmin
from torchemu.frontends.numpy.nn.modules.rectifiers import Softshrink as Softshrink
from torchemu.frontends.numpy.nn.modules.rectifiers import Softsign as Softsign
from torchemu.frontends.numpy.nn.modules.rectifiers import Tanhshrink as Tanhshrink
from torchemu.frontends.numpy.nn.modules.rectifiers import Threshold as Threshold

