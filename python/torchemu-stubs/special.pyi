"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy._tensor.elementwise import digamma as digamma
from torchemu.frontends.numpy._tensor.elementwise import digamma as psi
from torchemu.frontends.numpy._tensor.elementwise import erf as erf
from torchemu.frontends.numpy._tensor.elementwise import erfc as erfc
from torchemu.frontends.numpy._tensor.elementwise import erfinv as erfinv
from torchemu.frontends.numpy._tensor.elementwise import exp2 as exp2
from torchemu.frontends.numpy._tensor.elementwise import expm1 as expm1
from torchemu.frontends.numpy._tensor.elementwise import i0 as i0
from torchemu.frontends.numpy._tensor.elementwise import lgamma as gammaln
from torchemu.frontends.numpy._tensor.elementwise import log1p as log1p
from torchemu.frontends.numpy._tensor.elementwise import sigmoid as expit
from torchemu.frontends.numpy._tensor.elementwise import sinc as sinc
from torchemu.frontends.numpy._tensor.elementwise import xlogy as xlogy
from torchemu.frontends.numpy._tensor.parametric import logit as logit
from torchemu.frontends.numpy._tensor.parametric import round as round
from torchemu.frontends.numpy._tensor.reductions import log_softmax as log_softmax
from torchemu.frontends.numpy._tensor.reductions import logsumexp as logsumexp
from torchemu.frontends.numpy._tensor.reductions import softmax as softmax
from torchemu.frontends.numpy.special import entr as entr
from torchemu.frontends.numpy.special import i0e as i0e
from torchemu.frontends.numpy.special import i1 as i1
from torchemu.frontends.numpy.special import i1e as i1e
from torchemu.frontends.numpy.special import multigammaln as multigammaln
from torchemu.frontends.numpy.special import ndtr as ndtr
from torchemu.frontends.numpy.special import ndtri as ndtri
from torchemu.frontends.numpy.special import polygamma as polygamma
from torchemu.frontends.numpy.special import xlog1py as xlog1py

