"""A cluster of accelerators in one process."""

from torchemu._core import pybind

__version__ = pybind.Version()
