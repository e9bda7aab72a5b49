"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.backends import cpu as cpu
from torchemu.frontends.numpy.backends import cuda as cuda
from torchemu.frontends.numpy.backends import cudnn as cudnn
from torchemu.frontends.numpy.backends import mkl as mkl
from torchemu.frontends.numpy.backends import mkldnn as mkldnn
from torchemu.frontends.numpy.backends import mps as mps
from torchemu.frontends.numpy.backends import openmp as openmp

