"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.rendezvous import register_rendezvous_handler as register_rendezvous_handler
from torchemu.frontends.numpy.distributed.rendezvous import rendezvous as rendezvous

