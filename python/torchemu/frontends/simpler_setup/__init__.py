"""Stands in for ``simpler_setup``, which compiles kernels, with the machine's g++ and torchemu's headers."""
