"""Join: ranks with fewer batches than others go on taking part in the others' collectives until all have none left."""

from __future__ import annotations

import abc
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from torchemu.c10d.reductions import all_reduce
from torchemu.frontends.numpy._tensor.creation import ones, zeros
from torchemu.frontends.numpy.distributed._process_group import ProcessGroup

__all__ = ["Join", "JoinHook", "Joinable"]

_SKEWED = 1000
"""How many batches fewer than others a rank may have before it is told so."""


class JoinHook:
    """What a rank without batches does for one Joinable."""

    def main_hook(self) -> None:
        """Takes part in the collectives of one more batch of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Is called when no rank has any batch left.

        Args:
            is_last_joiner: whether this rank is one of those that had the most.
        """


class JoinConfig(NamedTuple):
    """How a Joinable takes part: whether at all, whether to fail as soon as a rank has no batch left, and whether it is
    the one that tells the others that this rank still has one."""

    enable: bool = False
    throw_on_early_termination: bool = False
    is_first_joinable: bool = False


class Joinable(abc.ABC):
    """What has collectives for each batch: it calls ``Join.notify_join_context(self)`` before those of a batch."""

    _join_config = JoinConfig()

    @abc.abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What takes part in its collectives. kwargs are those of Join."""

    @property
    @abc.abstractmethod
    def join_device(self) -> Any:
        """The device on which Join's own collectives are done."""

    @property
    @abc.abstractmethod
    def join_process_group(self) -> ProcessGroup:
        """The ranks."""


class Join:
    """A context for training with different numbers of batches. A rank that leaves it goes on taking part in what the
    Joinables of the others do, until all have left.

    Args:
        joinables: what has collectives, in the order in which it has them for a batch.
        enable: False: nothing of the kind.
        throw_on_early_termination: fail on all ranks as soon as one has no batch left.
        kwargs: for the hooks.

    Raises:
        ValueError: no Joinable, or they are not of one group and device.
        RuntimeError: at the end or in notify_join_context, with throw_on_early_termination.
    """

    def __init__(
        self,
        joinables: Sequence[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = list(joinables)
        self._hooks = [joinable.join_hook(**kwargs) for joinable in self._joinables]
        self._enable, self._throws = enable, throw_on_early_termination
        for number, joinable in enumerate(self._joinables):
            joinable._join_config = JoinConfig(enable, throw_on_early_termination, number == 0)
        first = self._joinables[0]
        self._group, self._device = first.join_process_group, first.join_device
        for other in self._joinables[1:]:
            if other.join_process_group is not self._group:
                raise ValueError("Using join context manager with multiple process groups")
            if other.join_device != self._device:
                raise ValueError("Using join context manager with multiple devices")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if not self._enable or kind is not None:
            return
        batches = 0
        while self._ranks_with_batches():
            if self._throws:
                all_reduce(ones(1, device=self._device), group=self._group)
                raise RuntimeError(f"Rank {self._group.rank()} exhausted all inputs.")
            for hook in self._hooks:
                hook.main_hook()
            batches += 1
            if batches == _SKEWED + 1:
                warnings.warn(
                    f"Detected uneven input skew of greater than {_SKEWED}. This means that rank {self._group.rank()} "
                    f"has at least {_SKEWED} fewer inputs than other currently-active ranks. This level of skew could "
                    "lead to performance degradation during training.",
                    stacklevel=2,
                )
        for joinable, hook in zip(self._joinables, self._hooks, strict=True):
            hook.post_hook(is_last_joiner=not batches)
            joinable._join_config = JoinConfig()

    def _ranks_with_batches(self) -> int:
        count = zeros(1, device=self._device)
        all_reduce(count, group=self._group)
        return int(count.item())

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Any:
        """Tells ranks that have no batch left that this one has.

        Returns:
            Outside of Join None, and for all Joinables but the first; otherwise the work that makes a tensor the number
            of ranks that have one.

        Raises:
            RuntimeError: a rank has none, and that is to fail.
        """
        enable, throws, is_first = joinable._join_config
        if not enable or not is_first:
            return None
        device, group = joinable.join_device, joinable.join_process_group
        count = ones(1, device=device)
        work = all_reduce(count, group=group, async_op=True)
        assert work is not None
        if throws:
            work.wait()
            ended = zeros(1, device=device)
            if count.item() < group.size():
                all_reduce(ended, group=group)
            if ended.item():
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work
