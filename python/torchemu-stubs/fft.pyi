"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.fft import fft as fft
from torchemu.frontends.numpy.fft import fft2 as fft2
from torchemu.frontends.numpy.fft import fftfreq as fftfreq
from torchemu.frontends.numpy.fft import fftn as fftn
from torchemu.frontends.numpy.fft import fftshift as fftshift
from torchemu.frontends.numpy.fft import hfft as hfft
from torchemu.frontends.numpy.fft import ifft as ifft
from torchemu.frontends.numpy.fft import ifft2 as ifft2
from torchemu.frontends.numpy.fft import ifftn as ifftn
from torchemu.frontends.numpy.fft import ifftshift as ifftshift
from torchemu.frontends.numpy.fft import ihfft as ihfft
from torchemu.frontends.numpy.fft import irfft as irfft
from torchemu.frontends.numpy.fft import irfft2 as irfft2
from torchemu.frontends.numpy.fft import irfftn as irfftn
from torchemu.frontends.numpy.fft import rfft as rfft
from torchemu.frontends.numpy.fft import rfft2 as rfft2
from torchemu.frontends.numpy.fft import rfftfreq as rfftfreq
from torchemu.frontends.numpy.fft import rfftn as rfftn

