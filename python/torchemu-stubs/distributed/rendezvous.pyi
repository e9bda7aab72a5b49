"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.c10d.rendezvous import register_rendezvous_handler as register_rendezvous_handler
from torchemu.c10d.rendezvous import rendezvous as rendezvous

