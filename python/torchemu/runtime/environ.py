"""The environment variables that torchrun sets for each worker."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from torchemu.runtime import Context


@dataclass(frozen=True)
class Launch:
    """The number of workers, and their meeting place, which nobody needs here.

    Attributes:
        nproc: workers of a node.
        nnodes: nodes.
        max_restarts: how often all workers are started anew after one has failed.
    """

    nproc: int
    nnodes: int = 1
    run_id: str = "none"
    role: str = "default"
    master_addr: str = "127.0.0.1"
    master_port: int = 29500
    max_restarts: int = 0

    @property
    def world_size(self) -> int:
        """Workers in all."""
        return self.nproc * self.nnodes

    def place(self, contexts: Sequence[Context]) -> None:
        """Puts the workers on nodes, where there are several."""
        if self.nnodes > 1:
            for context in contexts:
                first = context.rank // self.nproc * self.nproc
                context.settle_on(range(first, first + self.nproc))

    def variables(self, rank: int, restarts: int = 0) -> dict[str, str]:
        """The variables of one worker, after so many restarts."""
        node, local = divmod(rank, self.nproc)
        numbers = {
            "RANK": rank,
            "LOCAL_RANK": local,
            "GROUP_RANK": node,
            "NODE_RANK": node,
            "ROLE_RANK": rank,
            "WORLD_SIZE": self.world_size,
            "LOCAL_WORLD_SIZE": self.nproc,
            "GROUP_WORLD_SIZE": self.nnodes,
            "ROLE_WORLD_SIZE": self.world_size,
            "MASTER_PORT": self.master_port,
            "TORCHELASTIC_RESTART_COUNT": restarts,
            "TORCHELASTIC_MAX_RESTARTS": self.max_restarts,
        }
        names = {"MASTER_ADDR": self.master_addr, "ROLE_NAME": self.role, "TORCHELASTIC_RUN_ID": self.run_id}
        switches = {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"}
        if self.nproc > 1:
            switches["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")
        return {**{name: str(number) for name, number in numbers.items()}, **names, **switches}
