"""torch.distributed.pipelining.stage: a part of a model on a rank, and what it exchanges with its neighbours."""

from __future__ import annotations

from typing import Any

from torchemu import dtypes
from torchemu.frontends.numpy._autograd.api import backward
from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import empty, zeros_like
from torchemu.frontends.numpy.distributed import (
    ProcessGroup,
    Work,
    irecv,
    isend,
    recv_object_list,
    send_object_list,
)
from torchemu.frontends.numpy.distributed._process_group import resolved
from torchemu.frontends.numpy.nn.modules.module import Module

__all__ = ["PipelineStage"]

_FORWARD, _BACKWARD = 0, 1
"""Directions, as tags of messages count them."""

_TENSORS = 1 << 10
"""More than a stage gives to the next one."""


class PipelineStage:
    """A part of a model, of which one gives its outputs to the next.

    The first microbatch brings the shapes and dtypes of what comes from the stage before.

    Args:
        submodule: the part.
        stage_index: its number.
        num_stages: of how many.
        device: where it is.
        input_args, output_args: mean nothing here: shapes come with the first microbatch.
        group: the ranks; stage i is on rank i modulo their number. None: the default group.
        dw_builder: not used.

    Attributes:
        submod, stage_index, num_stages, device, group: as given.
        group_rank, group_size: this rank's number in the group, and its size.
        has_backward: gradients are wanted.
        output_chunks: what the microbatches have returned.

    Raises:
        ValueError: there is no such stage. RuntimeError: there are more ranks than stages.
    """

    def __init__(
        self,
        submodule: Module,
        stage_index: int,
        num_stages: int,
        device: Any,
        input_args: Any = None,
        output_args: Any = None,
        group: ProcessGroup | None = None,
        dw_builder: Any = None,
    ) -> None:
        if stage_index >= num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        if input_args is None and output_args is not None:
            raise AssertionError(
                "If specifying output_args, input_args must also be specified. Otherwise, shape inference will be "
                "performed at runtime"
            )
        self.submod, self.stage_index, self.num_stages = submodule, stage_index, num_stages
        self.device, self.group = device, group
        self._ranks = resolved(group)
        self.group_rank, self.group_size = self._ranks.rank(), self._ranks.size()
        if self.group_size > num_stages:
            raise RuntimeError(
                f"Pipeline group size {self.group_size} cannot be larger than number of stages {num_stages}"
            )
        self.has_backward = False
        self.forget_shapes()
        self.clear_runtime_states()

    @property
    def is_first(self) -> bool:
        """Whether it gets the batch."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Whether it has the result."""
        return self.stage_index == self.num_stages - 1

    def forget_shapes(self) -> None:
        """Has the next microbatch bring the shapes and dtypes again."""
        self._expected: list[tuple[tuple[int, ...], str, bool]] | None = None
        self._announced = False

    def clear_runtime_states(self) -> None:
        """Forgets the microbatches of the last step."""
        self.output_chunks: list[Any] = []
        self._kept: dict[int, tuple[list[Tensor], list[Tensor]]] = {}
        self._local: dict[tuple[int, int], list[Tensor]] = {}
        self._sent: list[Work] = []

    # -- messages

    def _neighbour(self, step: int) -> int:
        return (self.stage_index + step) % self.group_size

    def _tags(self, stage: int, direction: int, number: int, count: int) -> list[int]:
        """Tags, one for each tensor that a stage sends of a microbatch; no other message has them."""
        first = (number * self.num_stages + stage) * 2 + direction
        return [first * _TENSORS + place + 1 for place in range(count)]

    def _send(self, tensors: list[Tensor], to: PipelineStage | int, direction: int, number: int) -> None:
        """To a stage of this rank, or to a rank."""
        if isinstance(to, PipelineStage):
            to._local[direction, number] = tensors
            return
        tags = self._tags(self.stage_index, direction, number, len(tensors))
        for t, tag in zip(tensors, tags, strict=True):
            work = isend(t.detach().contiguous(), group_dst=to, group=self._ranks, tag=tag)
            assert work is not None
            self._sent.append(work)

    def _receive(self, source: int, like: list[Tensor], tags: list[int]) -> list[Tensor]:
        works = [irecv(t, group_src=source, group=self._ranks, tag=tag) for t, tag in zip(like, tags, strict=True)]
        for work in works:
            assert work is not None
            work.wait()
        return like

    def finish(self) -> None:
        """Waits until all that was sent has left."""
        for work in self._sent:
            work.wait()
        self._sent.clear()

    # -- forward

    def forward_one_chunk(
        self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any], local: dict[int, PipelineStage]
    ) -> Any:
        """The forward pass of a microbatch, with what comes before it and goes behind it.

        Args:
            number: of the microbatch.
            args: of the first stage; the others get theirs from the stage before.
            kwargs: of this stage.
            local: the stages of this rank.
        """
        inputs = args if self.is_first else tuple(self._inputs(number, local))
        output = self.submod(*inputs, **kwargs)
        outputs = [output] if not isinstance(output, tuple | list) else list(output)
        self.output_chunks.append(output)
        if self.has_backward:
            self._kept[number] = outputs, [t for t in inputs if isinstance(t, Tensor)]
        if not self.is_last:
            self._give(outputs, number, local)
        return output

    def _inputs(self, number: int, local: dict[int, PipelineStage]) -> list[Tensor]:
        if self.stage_index - 1 in local:
            given = self._local.pop((_FORWARD, number))
            return [t.detach().requires_grad_(t.requires_grad) for t in given]
        source = self._neighbour(-1)
        if self._expected is None:
            about: list[Any] = [None]
            recv_object_list(about, group_src=source, group=self._ranks)
            self._expected = about[0]
        room = [empty(shape, dtype=dtypes.parse(kind), device=self.device) for shape, kind, _ in self._expected]
        tags = self._tags(self.stage_index - 1, _FORWARD, number, len(room))
        found = self._receive(source, room, tags)
        wanted = [self.has_backward and needs for _, _, needs in self._expected]
        return [t.requires_grad_(needs) if needs else t for t, needs in zip(found, wanted, strict=True)]

    def _give(self, outputs: list[Tensor], number: int, local: dict[int, PipelineStage]) -> None:
        if self.stage_index + 1 in local:
            self._send(outputs, local[self.stage_index + 1], _FORWARD, number)
            return
        to = self._neighbour(1)
        if not self._announced:
            about = [(tuple(t.shape), t.dtype.name, t.is_floating_point()) for t in outputs]
            send_object_list([about], group_dst=to, group=self._ranks)
            self._announced = True
        self._send(outputs, to, _FORWARD, number)

    # -- backward

    def backward_one_chunk(self, number: int, loss: Tensor | None, local: dict[int, PipelineStage]) -> None:
        """The backward pass of a microbatch, with what comes before it and goes behind it.

        Args:
            loss: of the last stage.
        """
        outputs, inputs = self._kept.pop(number)
        if self.is_last:
            assert loss is not None
            loss.backward()
        else:
            self._backward(outputs, number, local)
        if not self.is_first:
            self._return(inputs, number, local)

    def _backward(self, outputs: list[Tensor], number: int, local: dict[int, PipelineStage]) -> None:
        floats = [t for t in outputs if t.is_floating_point()]
        if self.stage_index + 1 in local:
            grads = self._local.pop((_BACKWARD, number))
        else:
            with no_grad():
                room = [zeros_like(t) for t in floats]
            tags = self._tags(self.stage_index + 1, _BACKWARD, number, len(room))
            grads = self._receive(self._neighbour(1), room, tags)
        pairs = [(t, grad) for t, grad in zip(floats, grads, strict=True) if t.requires_grad]
        if pairs:
            backward([t for t, _ in pairs], [grad for _, grad in pairs])

    def _return(self, inputs: list[Tensor], number: int, local: dict[int, PipelineStage]) -> None:
        floats = [t for t in inputs if t.is_floating_point()]
        grads = [zeros_like(t) if t.grad is None else t.grad for t in floats]
        before = local.get(self.stage_index - 1)
        self._send(grads, before if before is not None else self._neighbour(-1), _BACKWARD, number)

    @no_grad()
    def scale_grads(self, grad_scale_factor: int) -> None:
        """Divides the gradients of the parameters."""
        if grad_scale_factor != 1:
            for p in self.submod.parameters():
                if p.grad is not None:
                    p.grad.div_(grad_scale_factor)
