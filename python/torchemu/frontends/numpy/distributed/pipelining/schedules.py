"""torch.distributed.pipelining.schedules: batches in microbatches through the stages of a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchemu.frontends.numpy import _settings
from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.distributed.pipelining import _orders
from torchemu.frontends.numpy.distributed.pipelining._orders import FORWARD, Action
from torchemu.frontends.numpy.distributed.pipelining.microbatch import cut, merge_chunks, split_args_kwargs_into_chunks
from torchemu.frontends.numpy.distributed.pipelining.stage import PipelineStage
from torchemu.unsupported import unsupported

__all__ = [
    "PipelineScheduleMulti",
    "PipelineScheduleSingle",
    "Schedule1F1B",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleLoopedBFS",
    "get_schedule_class",
]

_NO_GRAD = (
    "step() requires gradients to be enabled for backward computation; it should not be used under torch.no_grad() "
    "context. Please call eval() instead."
)


class _PipelineSchedule:
    """What all schedules have in common.

    Args:
        stages: those of this rank.
        n_microbatches: in how many parts a batch goes through.
        loss_fn: called with the last stage's output and the target of a microbatch; None: there is no backward pass.
        args_chunk_spec, kwargs_chunk_spec, output_merge_spec: along which dimensions; None: the first.
        scale_grads: divide gradients by the number of microbatches, for losses that are means.
    """

    def __init__(
        self,
        stages: Sequence[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        self._stages = {stage.stage_index: stage for stage in stages}
        self._n_microbatches, self._loss_fn, self.scale_grads = n_microbatches, loss_fn, scale_grads
        self._specs, self._output_merge_spec = (args_chunk_spec, kwargs_chunk_spec), output_merge_spec
        self._has_backward = loss_fn is not None
        self._num_stages = stages[0].num_stages
        self._has_begun = False

    def _order(self) -> list[Action]:
        """What this rank does in a step."""
        raise NotImplementedError

    def step(
        self,
        *args: Any,
        target: Any = None,
        losses: list[Any] | None = None,
        return_outputs: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Takes a batch through the pipeline, forward and backward. All ranks call it.

        Args:
            args: of the first stage, on its rank.
            target: for the loss, on the last stage's rank.
            losses: a list that becomes that of the microbatches' losses, on the last stage's rank.
            return_outputs: return what the last stage has returned.
            kwargs: of the stages of this rank.

        Returns:
            The output, on the last stage's rank; None on others.

        Raises:
            RuntimeError: gradients are not enabled.
        """
        if self._has_backward and not _settings.current().gradients:
            raise RuntimeError(_NO_GRAD)
        return self._run(args, kwargs, target, losses, return_outputs, self._has_backward)

    def eval(self, *args: Any, target: Any = None, losses: list[Any] | None = None, **kwargs: Any) -> Any:
        """As step, without backward passes."""
        with no_grad():
            return self._run(args, kwargs, target, losses, True, False)

    def _run(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        target: Any,
        losses: list[Any] | None,
        return_outputs: bool,
        has_backward: bool,
    ) -> Any:
        count = self._n_microbatches
        parts, named = split_args_kwargs_into_chunks(args, kwargs, count, *self._specs)
        targets = cut(target, count) if target is not None else None
        for stage in self._stages.values():
            stage.clear_runtime_states()
            stage.has_backward = has_backward
            if not self._has_begun:
                stage.forget_shapes()
        self._has_begun = True
        found: dict[int, Tensor] = {}
        for kind, index, number in self._order():
            stage = self._stages[index]
            if kind == FORWARD:
                output = stage.forward_one_chunk(number, parts[number], named[number], self._stages)
                if stage.is_last and self._loss_fn is not None and targets is not None:
                    found[number] = self._loss_fn(output, targets[number])
            elif has_backward:
                stage.backward_one_chunk(number, _loss_of(found, stage, number), self._stages)
        return self._ended(found, losses, return_outputs, has_backward)

    def _ended(
        self, found: dict[int, Tensor], losses: list[Any] | None, return_outputs: bool, has_backward: bool
    ) -> Any:
        for stage in self._stages.values():
            stage.finish()
            if has_backward and self.scale_grads:
                stage.scale_grads(self._n_microbatches)
        last = self._stages.get(self._num_stages - 1)
        if last is None:
            return None
        if losses is not None:
            losses[:] = [found[number] for number in sorted(found)]
        return merge_chunks(last.output_chunks, self._output_merge_spec) if return_outputs else None


def _loss_of(found: dict[int, Tensor], stage: PipelineStage, number: int) -> Tensor | None:
    if stage.is_last and number not in found:
        raise RuntimeError(
            f"Loss for microbatch {number} is not available. Available losses for microbatches: {list(found.values())}"
        )
    return found.get(number)


class PipelineScheduleSingle(_PipelineSchedule):
    """A schedule of one stage a rank; see _PipelineSchedule for the arguments.

    Args:
        stage: this rank's.
    """

    def __init__(
        self,
        stage: PipelineStage,
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        specs = args_chunk_spec, kwargs_chunk_spec, output_merge_spec
        super().__init__([stage], n_microbatches, loss_fn, *specs, scale_grads)
        self._stage = stage
        if n_microbatches < self._num_stages:
            self._check_microbatches()

    def _check_microbatches(self) -> None:
        """Called where there are less microbatches than stages."""


class ScheduleGPipe(PipelineScheduleSingle):
    """All microbatches forward, then all backward."""

    def _order(self) -> list[Action]:
        return _orders.forward_then_backward([self._stage.stage_index], self._n_microbatches)


class Schedule1F1B(PipelineScheduleSingle):
    """One microbatch forward and one backward in turn.

    Raises:
        ValueError: there are less microbatches than stages.
    """

    def _check_microbatches(self) -> None:
        raise ValueError(
            f"Number of microbatches ({self._n_microbatches}) must be greater than or equal to the number of stages "
            f"({self._num_stages})."
        )

    def _order(self) -> list[Action]:
        index = self._stage.stage_index
        return _orders.one_forward_one_backward(index, self._num_stages, self._n_microbatches)


class PipelineScheduleMulti(_PipelineSchedule):
    """A schedule of several stages a rank; see _PipelineSchedule for the arguments."""

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        **others: Any,
    ) -> None:
        for name in others:
            if name not in ("use_full_backward", "backward_requires_autograd"):
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{name}'")
        specs = args_chunk_spec, kwargs_chunk_spec, output_merge_spec
        super().__init__(stages, n_microbatches, loss_fn, *specs, scale_grads)
        self.pp_group_size, self.rank = stages[0].group_size, stages[0].group_rank


class ScheduleLoopedBFS(PipelineScheduleMulti):
    """All microbatches forward, stage after stage, then all backward."""

    def _order(self) -> list[Action]:
        return _orders.forward_then_backward(sorted(self._stages), self._n_microbatches)


class ScheduleInterleaved1F1B(PipelineScheduleMulti):
    """1F1B of several stages a rank.

    Raises:
        ValueError: rounds of as many microbatches as there are ranks do not come out even.
    """

    def __init__(self, stages: list[PipelineStage], n_microbatches: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(stages, n_microbatches, *args, **kwargs)
        rounds = max(1, n_microbatches // self.pp_group_size)
        if n_microbatches % rounds:
            raise ValueError(
                f"Interleaved 1F1B requires the number of microbatches to be a multiple of the number of rounds "
                f"({rounds}), but got {n_microbatches}."
            )

    def _order(self) -> list[Action]:
        return _orders.interleaved(sorted(self._stages), self.pp_group_size, self.rank, self._n_microbatches)


_BY_NAME: dict[str, Any] = {
    "1F1B": Schedule1F1B,
    "Interleaved1F1B": ScheduleInterleaved1F1B,
    "GPipe": ScheduleGPipe,
    "LoopedBFS": ScheduleLoopedBFS,
    "InterleavedZeroBubble": None,
    "PipelineScheduleSingle": PipelineScheduleSingle,
    "PipelineScheduleMulti": PipelineScheduleMulti,
    "ZBVZeroBubble": None,
    "DualPipeV": None,
}


def get_schedule_class(schedule_name: str) -> Any:
    """The schedule of a name, in whichever case.

    Raises:
        ValueError: there is none. NotImplementedError: PyTorch has one.
    """
    known = {name.lower(): name for name in _BY_NAME}
    name = known.get(schedule_name.lower())
    if name is None:
        raise ValueError(f"Unknown schedule name '{schedule_name}'. The valid options are {list(_BY_NAME)}")
    if _BY_NAME[name] is None:
        raise unsupported(f"Schedule{name}", "use ScheduleInterleaved1F1B")
    return _BY_NAME[name]
