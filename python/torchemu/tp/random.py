"""Random numbers of tensor parallel ranks, and activations that are computed again instead of kept.

The sequences are of the rank's device.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torchemu.frontends.numpy as torch
from torchemu.frontends.numpy.autograd import Function
from torchemu.runtime.rank_local import RankLocal
from torchemu.tp import _groups
from torchemu.tp.utils import gather_split_1d_tensor, split_tensor_into_1d_equal_chunks

__all__ = [
    "CheckpointFunction",
    "CudaRNGStatesTracker",
    "checkpoint",
    "get_all_rng_states",
    "get_cuda_rng_tracker",
    "get_data_parallel_rng_tracker_name",
    "get_expert_parallel_rng_tracker_name",
    "model_parallel_cuda_manual_seed",
]

_MODEL_PARALLEL_RNG_TRACKER_NAME = "model-parallel-rng"
_EXPERT_PARALLEL_RNG_TRACKER_NAME = "expert-parallel-rng"
_DATA_PARALLEL_RNG_TRACKER_NAME = "data-parallel-rng"

_TENSOR_OFFSET, _EXPERT_OFFSET, _PER_EXPERT = 2718, 1024, 100


def get_expert_parallel_rng_tracker_name() -> str:
    """The name of the random numbers of experts."""
    return _EXPERT_PARALLEL_RNG_TRACKER_NAME


def get_data_parallel_rng_tracker_name() -> str:
    """The name of the random numbers that all ranks of a tensor parallel group share."""
    return _DATA_PARALLEL_RNG_TRACKER_NAME


class CudaRNGStatesTracker:
    """Several sequences of random numbers, by name. Each goes on where it was left.

    Args:
        use_cudagraphable_rng, is_inference_rng_tracker: mean nothing here.
    """

    def __init__(self, use_cudagraphable_rng: bool = False, is_inference_rng_tracker: bool = False) -> None:
        self.reset()

    def is_initialized(self) -> bool:
        """Reports whether there has been a sequence."""
        return bool(self.states_)

    def reset(self) -> None:
        """Forgets all sequences."""
        self.states_: dict[str, torch.Tensor] = {}
        self.seeds_: set[int] = set()

    def get_states(self) -> dict[str, torch.Tensor]:
        """Returns where the sequences have come to, by name."""
        return dict(self.states_)

    def set_states(self, states: dict[str, torch.Tensor]) -> None:
        """Lets the sequences go on from what get_states returned."""
        self.states_ = states

    def add(self, name: str, seed: int) -> None:
        """Begins a sequence.

        Raises:
            Exception: there is one of that seed, or that name.
        """
        if seed in self.seeds_:
            raise Exception(f"seed {seed} already exists")
        if name in self.states_:
            raise Exception(f"cuda rng state {name} already exists")
        self.seeds_.add(seed)
        before = torch.cuda.get_rng_state()
        torch.cuda.manual_seed(seed)
        self.states_[name] = torch.cuda.get_rng_state()
        torch.cuda.set_rng_state(before)

    @contextlib.contextmanager
    def fork(self, name: str = _MODEL_PARALLEL_RNG_TRACKER_NAME) -> Iterator[None]:
        """Random numbers are those of a sequence, which goes on; afterwards they go on as if none had been drawn.

        Raises:
            Exception: there is no such sequence.
        """
        if name not in self.states_:
            raise Exception(f"cuda rng state {name} is not added")
        before = torch.cuda.get_rng_state()
        torch.cuda.set_rng_state(self.states_[name])
        try:
            yield
        finally:
            self.states_[name] = torch.cuda.get_rng_state()
            torch.cuda.set_rng_state(before)


_TRACKER: RankLocal[CudaRNGStatesTracker] = RankLocal(CudaRNGStatesTracker)


def get_cuda_rng_tracker(
    use_te_rng_tracker: bool = False, inference_rng_tracker: bool = False, use_cudagraphable_rng: bool = False
) -> CudaRNGStatesTracker:
    """The running rank's. The arguments mean nothing here."""
    return _TRACKER.get()


def get_all_rng_states() -> dict[str, torch.Tensor]:
    """Returns where the running rank's sequences have come to."""
    return _TRACKER.get().get_states()


def model_parallel_cuda_manual_seed(
    seed: int,
    te_rng_tracker: bool = False,
    inference_rng_tracker: bool = False,
    use_cudagraphable_rng: bool = False,
    tp_rank: int | None = None,
    ep_rank: int | None = None,
    etp_rank: int | None = None,
    force_reset_rng: bool = False,
) -> None:
    """Seeds a rank's random numbers: the usual ones are the same in a tensor parallel group, those of the tracker's
    fork() differ, by seed + 2718 + tensor parallel rank, and those of experts are of seed + 1024 + 100·expert parallel
    rank + expert tensor parallel rank.

    Args:
        seed: the same on all ranks of a tensor parallel group.
        tp_rank, ep_rank, etp_rank: instead of the rank's own numbers.
        te_rng_tracker, inference_rng_tracker, use_cudagraphable_rng, force_reset_rng: mean nothing here.
    """
    tp_rank = _groups.TENSOR.rank() if tp_rank is None else tp_rank
    ep_rank = _groups.EXPERT_MODEL.rank() if ep_rank is None else ep_rank
    etp_rank = _groups.EXPERT_TENSOR.rank() if etp_rank is None else etp_rank
    tracker = _TRACKER.get()
    tracker.reset()
    torch.cuda.manual_seed(seed)
    tracker.add(_DATA_PARALLEL_RNG_TRACKER_NAME, seed)
    tracker.add(_MODEL_PARALLEL_RNG_TRACKER_NAME, seed + _TENSOR_OFFSET + tp_rank)
    tracker.add(_EXPERT_PARALLEL_RNG_TRACKER_NAME, seed + _EXPERT_OFFSET + _PER_EXPERT * ep_rank + etp_rank)


_States = tuple[torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]


def _states() -> _States:
    """Returns where all of a rank's random numbers have come to."""
    return torch.get_rng_state(), torch.cuda.get_rng_state(), get_all_rng_states()


def _restore(states: _States) -> None:
    torch.set_rng_state(states[0])
    torch.cuda.set_rng_state(states[1])
    _TRACKER.get().set_states(dict(states[2]))


@contextlib.contextmanager
def _replayed(states: _States) -> Iterator[None]:
    """Lets random numbers be those from there on; afterwards they go on as if none had been drawn."""
    now = _states()
    _restore(states)
    try:
        yield
    finally:
        _restore(now)


class CheckpointFunction(Function):
    """A function whose activations are not kept: the backward pass calls it again, with the same random numbers."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], distribute_saved_activations: bool, *args: Any) -> Any:
        ctx.run_function, ctx.random, ctx.shape = run_function, _states(), None
        with torch.no_grad():
            outputs = run_function(*args)
        if distribute_saved_activations:
            first, ctx.shape = args[0], args[0].shape
            args = (split_tensor_into_1d_equal_chunks(first.detach(), new_buffer=True), *args[1:])
        ctx.others = [None if isinstance(t, torch.Tensor) else t for t in args]
        ctx.save_for_backward(*[t if isinstance(t, torch.Tensor) else None for t in args])
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor | None) -> Any:
        inputs = [other if t is None else t for t, other in zip(ctx.saved_tensors, ctx.others, strict=True)]
        if ctx.shape is not None:
            inputs[0] = gather_split_1d_tensor(inputs[0]).view(ctx.shape)
        leaves = [
            t.detach().requires_grad_(need) if isinstance(t, torch.Tensor) else t
            for t, need in zip(inputs, ctx.needs_input_grad[2:], strict=True)
        ]
        with _replayed(ctx.random), torch.enable_grad():
            outputs = ctx.run_function(*leaves)
        _go_back(outputs, grads)
        return None, None, *[t.grad if isinstance(t, torch.Tensor) else None for t in leaves]


def _go_back(outputs: Any, grads: Sequence[torch.Tensor | None]) -> None:
    """Adds gradients to those of what outputs were made of, from those of the outputs.

    Raises:
        RuntimeError: no output requires a gradient.
    """
    several = (outputs,) if isinstance(outputs, torch.Tensor) else tuple(outputs)
    pairs = [(t, g) for t, g in zip(several, grads, strict=True) if isinstance(t, torch.Tensor) and t.requires_grad]
    if not pairs:
        raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
    torch.autograd.backward([t for t, _ in pairs], [g for _, g in pairs])


def checkpoint(
    function: Callable[..., Any], distribute_saved_activations: bool, *args: Any
) -> torch.Tensor | tuple[torch.Tensor, ...]:
    """Calls a function, and again in the backward pass, so that its activations need not be kept.

    Args:
        function: of tensors to a tensor or several.
        distribute_saved_activations: each rank of the tensor parallel group keeps a part of the first argument.
        args: what it is called with.
    """
    return CheckpointFunction.apply(function, distribute_saved_activations, *args)
