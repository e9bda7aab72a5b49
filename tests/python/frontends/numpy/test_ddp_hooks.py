"""Communication hooks of DistributedDataParallel: what they are given, what becomes of what they return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from conftest import OpenWorld
from nn_cases import refused
from ranks import on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu import nn
from torchemu.distributed.algorithms.ddp_comm_hooks import default_hooks
from torchemu.nn.parallel import DistributedDataParallel as DDP  # noqa: N817 (its usual name)


@pytest.fixture(autouse=True)
def world(open_world: OpenWorld) -> torch.World:
    return open_world()


def gradients(rank: int) -> np.ndarray:
    """The gradient of a rank's weight: a number and a third, which short floats round."""
    return np.full((1, 3), rank + 1 / 3, np.float32)


def averaged(register: Callable[[Any], None], as_views: bool = False, passes: int = 1) -> list[Any]:
    """The gradients of the ranks, with a hook that register sets."""

    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        model = DDP(nn.Linear(3, 1, bias=False), gradient_as_bucket_view=as_views)
        register(model)
        for _ in range(passes):
            model.zero_grad()
            model(torch.from_numpy(gradients(rank))).sum().backward()
        return model.module.weight.grad.tolist()

    return on_ranks(3, program)


@pytest.mark.parametrize("as_views", [False, True])
def test_averaging(as_views: bool) -> None:
    plain = averaged(lambda model: None, as_views)
    hooked = averaged(lambda model: model.register_comm_hook(None, default_hooks.allreduce_hook), as_views, passes=3)
    np.testing.assert_allclose(hooked, plain, rtol=1e-6)
    np.testing.assert_allclose(plain, [[[4 / 3] * 3]] * 3, rtol=1e-6)


@pytest.mark.parametrize(
    ("hook", "kind"),
    [
        (default_hooks.fp16_compress_hook, np.float16),
        (default_hooks.bf16_compress_hook, ml_dtypes.bfloat16),
        (default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook), np.float16),
        (default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook), ml_dtypes.bfloat16),
    ],
)
def test_in_fewer_bits(world: torch.World, hook: Any, kind: Any) -> None:
    results = averaged(lambda model: model.register_comm_hook(None, hook))
    step = float(ml_dtypes.finfo(kind).eps)
    assert results[0] == results[1] == results[2]
    for value in results[0][0]:
        assert float(kind(value)) == value, "it has been rounded"
        assert abs(value - 4 / 3) <= 3 * step * 4 / 3
    reductions = [c for c in world.collectives() if c["collective"] == "all_reduce"]
    assert [c["bytes"] for c in reductions] == [2 * 3]


def test_what_a_hook_is_given() -> None:
    def program(rank: int) -> list[Any]:
        dist.init_process_group("nccl")
        model = DDP(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)), bucket_cap_mb=1e-5)
        seen: list[Any] = []

        def hook(state: list[Any], bucket: Any) -> torch.futures.Future:
            assert isinstance(bucket, dist.GradBucket)
            shapes = [tuple(p.shape) for p in bucket.parameters()]
            assert [tuple(g.shape) for g in bucket.gradients()] == shapes
            assert bucket.buffer().tolist() == [v for g in bucket.gradients() for v in g.flatten().tolist()]
            state.append((bucket.index(), bucket.is_last(), shapes))
            result = torch.futures.Future()
            result.set_result(torch.full_like(bucket.buffer(), 10.0 * bucket.index() + rank))
            return result

        hook.__annotations__.clear()
        model.register_comm_hook(seen, hook)
        model(torch.ones(1, 2)).sum().backward()
        return [seen, [p.grad.flatten()[0].item() for p in model.parameters()]]

    for rank, (seen, grads) in enumerate(on_ranks(2, program)):
        assert seen == [(i, i == 3, [shape]) for i, shape in enumerate([(1,), (1, 3), (3,), (3, 2)])]
        assert grads == [30.0 + rank, 20.0 + rank, 10.0 + rank, rank]


def test_misuse() -> None:
    def program(rank: int) -> list[tuple[str, str]]:
        dist.init_process_group("nccl")
        model = DDP(nn.Linear(1, 1))

        def other_bucket(state: Any, bucket: Any) -> Any: ...

        def other_result(state: Any, bucket: Any) -> Any: ...

        other_bucket.__annotations__ = {"bucket": int}
        other_result.__annotations__ = {"return": int}
        found = [
            refused(lambda hook=hook: model.register_comm_hook(None, hook)) for hook in (3, other_bucket, other_result)
        ]
        model.register_comm_hook(None, default_hooks.allreduce_hook)
        return [*found, refused(lambda: model.register_comm_hook(None, default_hooks.allreduce_hook))]

    assert on_ranks(1, program)[0] == [
        ("TypeError", "Communication hook must be callable."),
        ("ValueError", "Communication hook: bucket annotation should be dist.GradBucket."),
        ("ValueError", "Communication hook: return annotation should be torch.futures.Future[torch.Tensor]."),
        ("RuntimeError", "register_comm_hook or register_builtin_comm_hook can only be called once."),
    ]
