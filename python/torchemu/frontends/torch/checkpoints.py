"""Checkpoints that a process of their own is to write, beside the program: here a thread of the rank does."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import torch.distributed as dist

from torchemu.frontends.torch.session import Session

_SAVER = "torch.distributed.checkpoint.state_dict_saver"


def install(run: Session) -> None:
    """Lets ranks save so, until the run ends."""
    run.on_load[_SAVER] = lambda saver: run.replace(
        saver, "_ProcessBasedAsyncCheckpointExecutor", _of_thread(saver._ThreadBasedAsyncCheckpointExecutor)
    )


def _of_thread(of_thread: type) -> type:
    """Returns what takes the place of the executor with a process, made of the one with a thread."""

    class OfThread(of_thread):
        """An executor whose thread has a group of its own, as the process has: the program may use the other."""

        def execute_save(self, states: Any, *, process_group: Any = None, **kwargs: Any) -> Future[Any]:
            """Saves on a thread. Returns the future of the checkpoint's metadata."""
            if kwargs.get("no_dist") or not dist.is_initialized():
                return super().execute_save(states, **kwargs)
            ranks = dist.get_process_group_ranks(process_group)
            own = dist.new_group(ranks, backend="gloo", use_local_synchronization=True)
            saved: Future[Any] = super().execute_save(states, process_group=own, **kwargs)
            saved.add_done_callback(lambda _: dist.destroy_process_group(own))
            return saved

    return OfThread
