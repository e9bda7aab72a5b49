"""torch.distributed.rendezvous: ranks find each other by a URL."""

from torchemu.c10d.rendezvous import register_rendezvous_handler, rendezvous

__all__ = ["register_rendezvous_handler", "rendezvous"]
