"""Random numbers of tensor parallel ranks, activations that are calculated again, and data of one rank for all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR
from tp_ranks import on_tensor_parallel_ranks

import torchemu as torch
from torchemu import tp
from torchemu.tp import parallel_state
from torchemu.tp.data import broadcast_data
from torchemu.tp.random import (
    CudaRNGStatesTracker,
    get_all_rng_states,
    get_data_parallel_rng_tracker_name,
)


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world(SIXTY_FOUR)


def drawn(seed: int, n: int) -> list[float]:
    """The first n numbers from a seed."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(n, generator=generator).tolist()


def test_seeds_of_ranks() -> None:
    def rank(r: int) -> list[list[float]]:
        parallel_state.destroy_model_parallel()
        parallel_state.initialize_model_parallel(2, expert_model_parallel_size=2, expert_tensor_parallel_size=1)
        tp.model_parallel_cuda_manual_seed(100)
        tracker = tp.get_cuda_rng_tracker()
        found = [torch.rand(2).tolist()]
        for name in ("model-parallel-rng", tp.get_expert_parallel_rng_tracker_name()):
            with tracker.fork(name):
                found.append(torch.rand(2).tolist())
        with tracker.fork(get_data_parallel_rng_tracker_name()):
            found.append(torch.rand(2).tolist())
        return found

    for r, found in enumerate(on_tensor_parallel_ranks(4, rank)):
        expert = parallel_expert(r)
        assert found == [
            drawn(100, 2),
            drawn(100 + 2718 + r % 2, 2),
            drawn(100 + 1024 + 100 * expert, 2),
            drawn(100, 2),
        ]


def parallel_expert(r: int) -> int:
    """Of 4 ranks in the order tp-cp-ep-dp-pp with one tensor parallel expert rank, ep varies fastest."""
    return r % 2


def test_seeds_of_chosen_ranks() -> None:
    def rank(r: int) -> list[float]:
        tp.model_parallel_cuda_manual_seed(5, tp_rank=3, ep_rank=0, etp_rank=0)
        with tp.get_cuda_rng_tracker().fork():
            return torch.rand(3).tolist()

    assert on_tensor_parallel_ranks(2, rank) == [drawn(5 + 2718 + 3, 3)] * 2


def test_a_tracker_keeps_sequences_apart() -> None:
    tracker = CudaRNGStatesTracker()
    assert not tracker.is_initialized()
    torch.manual_seed(1)
    tracker.add("a", 10)
    tracker.add("b", 20)
    assert tracker.is_initialized()
    found: dict[str, list[float]] = {"a": [], "b": [], "": []}
    for name in ("a", "b", "a", "", "b", "a", ""):
        if name:
            with tracker.fork(name):
                found[name].append(torch.rand(1).item())
        else:
            found[name].append(torch.rand(1).item())
    assert found == {"a": drawn(10, 3), "b": drawn(20, 2), "": drawn(1, 2)}


def test_a_tracker_goes_on_from_its_states() -> None:
    tracker = CudaRNGStatesTracker()
    tracker.add("a", 10)
    states = tracker.get_states()
    with tracker.fork("a"):
        first = torch.rand(4).tolist()
    tracker.set_states(states)
    with tracker.fork("a"):
        assert torch.rand(4).tolist() == first
    tracker.reset()
    assert tracker.get_states() == {}


def test_after_an_error_random_numbers_go_on() -> None:
    tracker = CudaRNGStatesTracker()
    tracker.add("a", 10)
    torch.manual_seed(1)
    with pytest.raises(ZeroDivisionError), tracker.fork("a"):
        torch.rand(2)
        raise ZeroDivisionError
    assert torch.rand(1).tolist() == drawn(1, 1)


def test_trackers_say_what_is_wrong() -> None:
    tracker = CudaRNGStatesTracker()
    tracker.add("a", 10)
    with pytest.raises(Exception, match="seed 10 already exists"):
        tracker.add("b", 10)
    with pytest.raises(Exception, match="cuda rng state a already exists"):
        tracker.add("a", 11)
    with pytest.raises(Exception, match="cuda rng state c is not added"), tracker.fork("c"):
        pass


# -- checkpoints


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("divided", [False, True])
def test_checkpoint(n: int, divided: bool) -> None:
    """Results and gradients as without, though it draws random numbers of both kinds; and those after it go on."""

    def function(x: torch.Tensor, factor: float, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with tp.get_cuda_rng_tracker().fork():
            mine = torch.rand(6, 4, dtype=torch.float64)
        return (x * w * mine).exp() * torch.rand(6, 4, dtype=torch.float64), x * factor

    def rank(r: int, checkpointed: bool) -> list[Any]:
        tp.model_parallel_cuda_manual_seed(3)
        x = torch.linspace(0, 1, 24, dtype=torch.float64).view(6, 4).requires_grad_()
        w = torch.full((6, 4), 0.5, dtype=torch.float64, requires_grad=True)
        given = (x, 3.0, w)
        y, z = tp.checkpoint(function, divided, *given) if checkpointed else function(*given)
        between = torch.rand(2).tolist()
        (y.sum() + z.square().sum()).backward()
        states = sorted(get_all_rng_states().items())
        assert x.grad is not None and w.grad is not None
        rest = [between, torch.rand(2).tolist(), [(k, v.tolist()) for k, v in states]]
        return [y.tolist(), z.tolist(), x.grad.tolist(), w.grad.tolist(), *rest]

    assert on_tensor_parallel_ranks(n, rank, True) == on_tensor_parallel_ranks(n, rank, False)


def test_checkpoint_calls_the_function_again() -> None:
    def rank(r: int) -> list[bool]:
        calls = []

        def function(x: torch.Tensor) -> torch.Tensor:
            calls.append(torch.is_grad_enabled())
            return x * 2

        x = torch.ones(4, requires_grad=True)
        y = tp.checkpoint(function, False, x)
        before = list(calls)
        y.sum().backward()
        assert before == [False] and x.grad is not None and x.grad.tolist() == [2] * 4
        return calls

    assert on_tensor_parallel_ranks(2, rank) == [[False, True]] * 2


# -- data


def test_broadcast_data() -> None:
    texts = {"text": np.arange(12).reshape(3, 4), "mask": np.zeros((2, 0)), "more": np.array(7), "left": np.ones(3)}

    def rank(r: int) -> dict[str, Any]:
        data = {k: torch.tensor(v, dtype=torch.int64) for k, v in texts.items()} if r == 0 else None
        found = broadcast_data(["text", "mask", "more"], data, torch.int64)
        return {key: (t.shape, t.tolist()) for key, t in found.items()}

    want = {"text": ((3, 4), texts["text"].tolist()), "mask": ((2, 0), [[], []]), "more": ((), 7)}
    assert on_tensor_parallel_ranks(3, rank) == [want] * 3


def test_broadcast_data_of_another_dtype() -> None:
    def rank(r: int) -> None:
        with pytest.raises(AssertionError, match=r"text has data type torch.float32 which is different"):
            broadcast_data(["text"], {"text": torch.ones(2)}, torch.int64)

    on_tensor_parallel_ranks(1, rank)
