"""What ranks do together for a checkpoint: all fail when one does."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from torchemu.frontends.numpy.distributed import ProcessGroup, all_gather_object, is_initialized
from torchemu.frontends.numpy.distributed._process_group import resolved
from torchemu.frontends.numpy.distributed.checkpoint.api import CheckpointException

T = TypeVar("T")

_ALONE = (
    "torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to {} in a single process."
)


class Ranks:
    """The ranks that save or load together.

    Args:
        group: None: the default group, or this process alone where there is none.
        no_dist: this process alone.
        intent: "save" or "load".

    Attributes:
        rank, size: this rank's number, and how many there are.
    """

    def __init__(self, group: ProcessGroup | None, no_dist: bool, intent: str) -> None:
        self._group: ProcessGroup | None = None
        if not no_dist and is_initialized():
            self._group = resolved(group)
        else:
            warnings.warn(_ALONE.format(intent), stacklevel=4)
        self.rank = self._group.rank() if self._group is not None else 0
        self.size = self._group.size() if self._group is not None else 1

    def everybodys(self, what: str, calculate: Callable[[], T]) -> list[T]:
        """What each rank calculates.

        Raises:
            CheckpointException: a rank could not.
        """
        mine: Any
        try:
            mine = ("ok", calculate())
        except Exception as error:
            mine = ("failed", (error.with_traceback(None), traceback.extract_tb(error.__traceback__)))
        answers = self._gathered(mine)
        failures = {rank: value for rank, (kind, value) in enumerate(answers) if kind == "failed"}
        if failures:
            raise CheckpointException(what, failures)
        return [value for _, value in answers]

    def _gathered(self, mine: Any) -> list[Any]:
        if self._group is None:
            return [mine]
        answers: list[Any] = [None] * self.size
        all_gather_object(answers, mine, group=self._group)
        return answers
