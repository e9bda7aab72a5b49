"""PowerSGD: gradients that are matrices are averaged as products of two narrow ones, M ≈ P·Qᵀ.

P = M·Q is added up over the ranks and made orthonormal, then Q = Mᵀ·P is averaged. What that loses is added to the next
gradient of the same bucket, and the next time Q begins where it ended.
"""

# ruff: noqa: N802, N803, N999 (PyTorch's names)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchemu import dtypes
from torchemu.c10d.futures import Future
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import empty, zeros
from torchemu.frontends.numpy._tensor.from_data import from_numpy
from torchemu.frontends.numpy._tensor.generator import Generator
from torchemu.frontends.numpy._tensor.joining import cat
from torchemu.frontends.numpy._tensor.random_numbers import randn
from torchemu.frontends.numpy._tensor.reductions import norm
from torchemu.frontends.numpy.distributed import GradBucket, ProcessGroup, Work, all_reduce
from torchemu.frontends.numpy.distributed._process_group import resolved
from torchemu.frontends.numpy.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """What the hook is told, and what it keeps from pass to pass.

    Args:
        process_group: the ranks; None: the default group.
        matrix_approximation_rank: how many columns P and Q have at most.
        start_powerSGD_iter: before this iteration gradients are averaged as they are.
        min_compression_rate: a matrix is left as it is that does not become less by this factor.
        use_error_feedback: add what has been lost to the next gradient.
        warm_start: begin with the last Q, and not with random numbers.
        orthogonalization_epsilon: added to norms that are divided by.
        random_seed: of the random numbers, the same on all ranks.
        compression_stats_logging_frequency, batch_tensors_with_same_shape: mean nothing here.

    Attributes:
        iter: how many iterations there have been.
        error_dict: what has been lost, by bucket.

    Raises:
        ValueError: gradients are to be compressed in the first two iterations, in which buckets change.
    """

    def __init__(
        self,
        process_group: ProcessGroup | None,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD "
                "can only be applied after the first two iterations in DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank, self.min_compression_rate = matrix_approximation_rank, min_compression_rate
        self.start_powerSGD_iter = start_powerSGD_iter
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = np.random.RandomState(random_seed)
        self.error_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, Tensor] = {}
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Counts the iteration, if the bucket is its last."""
        self.iter += bucket.is_last()

    def _with_error(self, bucket: GradBucket) -> Tensor | None:
        """Adds what has been lost to the gradients; returns a copy of the sum, if it is of use."""
        if not self.use_error_feedback:
            return None
        gradients = bucket.buffer()
        if bucket.index() in self.error_dict:
            gradients.add_(self.error_dict[bucket.index()])
        return gradients.detach().clone()

    def _columns(self, shapes: list[tuple[int, int]], bucket: GradBucket, like: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Each matrix's Q, made orthonormal, and the memory that they are in."""
        sizes = [rows * rank for rows, rank in shapes]
        kept = self.q_memory_dict.get(bucket.index())
        memory = empty(sum(sizes), dtype=like.dtype, device=like.device) if kept is None else kept
        parts = [part.view(shape) for part, shape in zip(memory.split(sizes), shapes, strict=True)]
        if kept is None:
            source = Generator().manual_seed(int(self.rng.randint(1_000_000_000)))
            for part in parts:
                part.copy_(randn(1, *part.shape, generator=source, device="cpu", dtype=like.dtype)[0])
        for part in parts:
            _orthogonalize(part, self.orthogonalization_epsilon)
        if self.warm_start:
            self.q_memory_dict[bucket.index()] = memory
        return memory, parts


def _orthogonalize(matrix: Tensor, epsilon: float) -> None:
    """Makes the columns orthonormal, in place: those of a few by Gram and Schmidt, others by a QR decomposition."""
    columns = matrix._shape[1]
    if columns > 2 and matrix.dtype not in (dtypes.float16, dtypes.bfloat16):
        matrix.copy_(from_numpy(np.linalg.qr(matrix.detach().cpu().numpy())[0]))
        return
    for number in range(columns):
        column = matrix[:, number : number + 1]
        length = norm(column)
        column.div_(length + epsilon) if epsilon or length.item() else column.zero_()
        if number + 1 < columns:
            rest = matrix[:, number + 1 :]
            rest.sub_((column * rest).sum(0) * column)


Begun = tuple[Work | None, Callable[[], None]]
"""The work that a first sum is, and what is to be done when it has ended."""
Begin = Callable[[PowerSGDState, GradBucket, ProcessGroup], Begun]


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Averages the gradients of a bucket, matrices as products of narrow ones.

    Args:
        state: what to do, and what is kept.
        bucket: the gradients.
    """
    return _averaged(state, bucket, _by_matrices)


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Averages all gradients of a bucket as one square matrix, filled up with zeros, that is a product of narrow ones.

    Args:
        state: what to do, and what is kept.
        bucket: the gradients.
    """
    return _averaged(state, bucket, _as_square)


def _averaged(state: PowerSGDState, bucket: GradBucket, begin: Begin) -> Future[Tensor]:
    """Averages a bucket as it is at first, and then by what is begun here and ended when the first sum is there."""
    group, gradients = resolved(state.process_group), bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(group, bucket)
    before = state._with_error(bucket)
    work, end = begin(state, bucket, group)
    assert work is not None

    def finish(_: Any) -> Tensor:
        end()
        if before is not None:
            state.error_dict[bucket.index()] = before - gradients
        state.maybe_increase_iter(bucket)
        return gradients

    return work.get_future().then(finish)


def _by_matrices(state: PowerSGDState, bucket: GradBucket, group: ProcessGroup) -> Begun:
    gradients = bucket.buffer()
    matrices, others = _divided(state, bucket.gradients())
    ranks = [min(*m.shape, state.matrix_approximation_rank) for m in matrices]
    memory, qs = state._columns([(m._shape[1], r) for m, r in zip(matrices, ranks, strict=True)], bucket, gradients)
    flat = cat([t.reshape(-1) for t in others]) if others else zeros(0, dtype=gradients.dtype, device=gradients.device)
    ps = [m @ q for m, q in zip(matrices, qs, strict=True)]

    def end() -> None:
        for t, mean in zip(others, flat.div_(group.size()).split([t.numel() for t in others]), strict=True):
            t.copy_(mean.view_as(t))
        _reduce_products(state, group, matrices, ps, (memory, qs))

    return all_reduce(flat, group=group, async_op=True), end


def _as_square(state: PowerSGDState, bucket: GradBucket, group: ProcessGroup) -> Begun:
    gradients = bucket.buffer()
    side = int(np.ceil(np.sqrt(gradients.numel())))
    square = zeros(side * side, dtype=gradients.dtype, device=gradients.device)
    square[: gradients.numel()].copy_(gradients)
    matrix = square.view(side, side)
    memory, qs = state._columns([(side, state.matrix_approximation_rank)], bucket, gradients)
    p = matrix @ qs[0]

    def end() -> None:
        _reduce_columns(state, group, [matrix], [p], (memory, qs))
        gradients.copy_((p @ qs[0].t()).reshape(-1)[: gradients.numel()])

    return all_reduce(p, group=group, async_op=True), end


def _divided(state: PowerSGDState, gradients: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """The gradients as matrices that are worth it, and the others."""
    matrices, others = [], []
    for t in gradients:
        matrix = t.view(t._shape[0], -1) if t.dim() else t.view(1, 1)
        rows, columns = matrix.shape
        rank = min(rows, columns, state.matrix_approximation_rank)
        if (rows + columns) * rank * state.min_compression_rate < rows * columns:
            matrices.append(matrix)
        else:
            others.append(t)
    return matrices, others


def _reduce_products(
    state: PowerSGDState,
    group: ProcessGroup,
    matrices: list[Tensor],
    ps: list[Tensor],
    of_q: tuple[Tensor, list[Tensor]],
) -> None:
    """Makes each matrix the product of the ranks' common P and the mean of their Q."""
    if not matrices:
        return
    joined = cat([p.reshape(-1) for p in ps])
    all_reduce(joined, group=group)
    ps = [part.view(p.shape) for part, p in zip(joined.split([p.numel() for p in ps]), ps, strict=True)]
    _reduce_columns(state, group, matrices, ps, of_q)
    for matrix, p, q in zip(matrices, ps, of_q[1], strict=True):
        matrix.copy_(p @ q.t())


def _reduce_columns(
    state: PowerSGDState,
    group: ProcessGroup,
    matrices: list[Tensor],
    ps: list[Tensor],
    of_q: tuple[Tensor, list[Tensor]],
) -> None:
    """Makes each common P orthonormal, and Q the mean of what it makes of the ranks' matrices."""
    memory, qs = of_q
    for matrix, p, q in zip(matrices, ps, qs, strict=True):
        _orthogonalize(p, state.orthogonalization_epsilon)
        q.copy_(matrix.t() @ p)
    all_reduce(memory, group=group)
    memory.div_(group.size())
