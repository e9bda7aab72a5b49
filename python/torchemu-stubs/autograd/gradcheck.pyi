"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.autograd.gradcheck import GradcheckError as GradcheckError
from torchemu.frontends.numpy.autograd.gradcheck import gradcheck as gradcheck
from torchemu.frontends.numpy.autograd.gradcheck import gradgradcheck as gradgradcheck

