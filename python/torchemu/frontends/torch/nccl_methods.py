"""Methods that PyTorch's ProcessGroupNCCL has beside collectives, and gloo's group has not."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import torch.distributed as dist
from torch._C._distributed_c10d import OpType
from torch.distributed import distributed_c10d as c10d

from torchemu.c10d import hooks
from torchemu.c10d.completion import Completion, WorkInfo
from torchemu.frontends.torch.groups import AhbmGroup
from torchemu.frontends.torch.session import Session


def install(run: Session) -> None:
    """Lets c10d take the group that a shrunk one has made, until the run ends."""
    run.replace(c10d, "_create_shrunk_process_group", _named)


def _named(group: AhbmGroup, ranks: Sequence[int], metadata: dict[str, Any], is_default: bool) -> AhbmGroup:
    """Gives a group that shrink has returned the names by which c10d knows it."""
    group._set_group_name(metadata["new_group_name"])
    described = "default:shrunken" if is_default else f"{metadata['original_group_name']}:shrunk"
    group._set_group_desc(described)
    group.bound_device_id = metadata["bound_device_id"]
    c10d._world.pg_backend_config[group] = metadata["backend_config"]
    return group


class NcclMethods(AhbmGroup):
    """A group that has them."""

    supports_shrinking = True
    _shrunk = 0

    def shrink(self, ranks_to_exclude: Sequence[int], shrink_flags: int = 0, opts: Any = None) -> AhbmGroup:
        """Returns a group of the ranks that are left, all of which call it and no other.

        Args:
            ranks_to_exclude: those of this group that are not in it.
            shrink_flags: SHRINK_ABORT ends, with an error, what was issued to this group.
            opts: those of the new group; None is this one's.
        """
        if shrink_flags & c10d.SHRINK_ABORT:
            self.abort()
        self._shrunk += 1
        left = [rank for rank in range(self.size()) if rank not in ranks_to_exclude]
        made = self.split_group(left, opts=opts, group_name=f"{self.group_name}:shrunk:{self._shrunk}")
        assert made is not None  # c10d has refused to exclude the rank that calls
        return made

    def _register_on_completion_hook(self, hook: Callable[[WorkInfo], Any]) -> None:
        """Calls a function for each operation of this rank that has ended: when it issues the next one, and when it
        leaves the group.

        Raises:
            DistBackendError: there is such a function already, or the environment does not ask for times.
        """
        if self.hooks is not None and Completion in self.hooks.watchers:
            raise dist.DistBackendError("ProcessGroupNCCL OnCompletion hook already registered")
        if os.environ.get("TORCH_NCCL_ENABLE_TIMING", "0").lower() not in _TRUE:
            raise dist.DistBackendError(
                "ProcessGroupNCCL OnCompletion hook requires recording start and end events which require setting "
                "TORCH_NCCL_ENABLE_TIMING environment variable. This is only available for NCCL version >= 2.4."
            )
        hooks.attach(self, Completion, Completion(hook, OpType.__members__))

    def shutdown(self) -> None:
        """Leaves the group, after such functions have been called for all that has been issued."""
        completion = self.hooks.watchers.get(Completion) if self.hooks is not None else None
        if isinstance(completion, Completion):
            completion.finish()
        super().shutdown()
        self.refuse_more()

    def abort(self) -> None:
        """Ends, with an error, what this rank has a part in and that cannot go on; nothing can be issued any more."""
        super().abort()
        self.refuse_more()


_TRUE = ("1", "y", "yes", "t", "true")
