"""torch.distributed.checkpoint.default_planner: what is loaded of a checkpoint that has not all."""

from __future__ import annotations

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]


class DefaultSavePlanner:
    """Says nothing: what is saved is decided in any case as PyTorch's does. Arguments mean nothing.

    Args:
        flatten_state_dict, flatten_sharded_tensors, dedup_save_to_lowest_rank: mean nothing here.
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_save_to_lowest_rank: bool = False,
    ) -> None:
        """Keeps nothing."""


class DefaultLoadPlanner:
    """Says whether all must be there.

    Args:
        allow_partial_load: leave what the checkpoint has not as it is.
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:
        self.allow_partial_load = allow_partial_load
