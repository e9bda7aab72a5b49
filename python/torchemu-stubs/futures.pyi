"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.c10d.futures import Future as Future
from torchemu.c10d.futures import collect_all as collect_all
from torchemu.c10d.futures import wait_all as wait_all

