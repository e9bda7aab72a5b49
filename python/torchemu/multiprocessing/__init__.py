"""torch.multiprocessing: spawn, with cooperative ranks instead of processes."""

from torchemu.multiprocessing._spawn import ProcessException, ProcessRaisedException, SpawnException, spawn

__all__ = ["ProcessException", "ProcessRaisedException", "SpawnException", "spawn"]
