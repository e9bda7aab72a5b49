"""The language's names, as ``triton.language.random``."""

from torchemu.frontends.triton.face.language import *  # noqa: F403
from torchemu.frontends.triton.face.language import __getattr__ as __getattr__
