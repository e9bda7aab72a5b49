"""Stands in for ``simpler_setup``, which compiles kernels: here it finds them by the names of their sources."""
